// Keeps a page current: fetches it again every two seconds and puts in what changed, unless somebody is at work in it.
(() => {
  "use strict";
  const busy = (old) => old.contains(document.activeElement) && document.activeElement !== document.body
    || old.querySelector("details.menu[open]")
    || [...old.querySelectorAll("textarea")].some((area) => area.value !== area.defaultValue);
  const opened = (node) => [...node.querySelectorAll(".prose details")].map((one) => one.open);
  setInterval(async () => {
    const old = document.getElementById("live");
    if (document.hidden || busy(old)) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
      if (!fresh || busy(old)) return;
      const state = opened(old);
      [...fresh.querySelectorAll(".prose details")].forEach((one, at) => { if (state[at]) one.open = true; });
      if (fresh.innerHTML !== old.innerHTML) old.innerHTML = fresh.innerHTML;
    } catch { /* the server is gone; the page stays as it is */ }
  }, 2000);
})();
