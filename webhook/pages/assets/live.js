// Keeps a session's page up to date: the server says when something changed, and
// the page is fetched again. What is unfolded stays so.
"use strict";

const stream = new EventSource(document.body.dataset.live);
let fetching = false;
let newest = "";

const shown = () => document.querySelector("main");

stream.onmessage = (event) => {
  newest = event.data;
  if (!fetching && newest !== shown().dataset.version) refresh();
};

async function refresh() {
  fetching = true;
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) return stream.close();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = page.querySelector("main");
    for (const folded of shown().querySelectorAll("details[id]")) {
      const same = next.querySelector("#" + folded.id);
      if (same) same.open = folded.open;
    }
    shown().replaceWith(next);
    if (!page.body.dataset.live) stream.close();
  } catch {
    // The server is away for a moment; the stream comes back by itself.
  } finally {
    fetching = false;
  }
}
