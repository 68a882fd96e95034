package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// findingOf says in words why a tier could not be had. The kernel's error
// tells little, so the usual culprits are asked, the most specific one first.
func findingOf(tier Tier, err error) Finding {
	if failure, ok := errors.AsType[*Error](err); ok && failure.Code == CodeUnavailable {
		return Finding{Layer: "user", Problem: failure.Error() + ".",
			Remedy: "Run handoff as an ordinary user, or give its container the capabilities SETUID, SETGID and CHOWN."}
	}
	if tier == Restricted {
		return Finding{Layer: "Landlock and seccomp", Problem: fmt.Sprintf("Tier %s failed: %v.", tier, err),
			Remedy: "Use a container runtime whose seccomp profile allows the landlock and seccomp system calls."}
	}
	return Finding{Layer: "user namespaces", Problem: fmt.Sprintf("Tier %s failed: %v.", tier, err), Remedy: namespaceRemedy()}
}

// namespaceRemedy asks the settings that are known to forbid user namespaces.
func namespaceRemedy() string {
	switch {
	case setting("/proc/sys/user/max_user_namespaces") == "0":
		return "Allow them with: sysctl -w user.max_user_namespaces=15000"
	case setting("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "Allow them with: sysctl -w kernel.unprivileged_userns_clone=1"
	case setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor restricts them (Ubuntu 23.10 and later). Install an AppArmor profile for the handoff binary that has the rule " +
			"\"userns,\", or allow them for all with: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case inContainer():
		return "The container's runtime forbids them. Start it with a seccomp profile that allows unshare, clone and mount, and with an unmasked /proc " +
			"(docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined --security-opt apparmor=unconfined), " +
			"or run handoff outside of a container."
	default:
		return "Use a kernel from 5.12 on that is built with CONFIG_USER_NS and the other namespaces."
	}
}

func landlockFinding(abi int, err error) Finding {
	finding := Finding{Layer: "Landlock"}
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		finding.Problem = "The kernel has it, but it was not enabled at boot."
		finding.Remedy = "Add landlock to the lsm= list of the kernel's command line."
	case err != nil && inContainer():
		finding.Problem = fmt.Sprintf("The kernel or the container's seccomp profile does not offer it (%v).", err)
		finding.Remedy = "Use Linux 6.12 or later and a container runtime whose profile knows Landlock."
	case err != nil:
		finding.Problem = fmt.Sprintf("The kernel does not offer it (%v).", err)
		finding.Remedy = "Use Linux 6.12 or later, built with CONFIG_SECURITY_LANDLOCK."
	default:
		finding.Problem = fmt.Sprintf("The kernel offers version %d.", abi)
		finding.Remedy = fmt.Sprintf("Use Linux 6.12 or later, which offers version %d.", landlockForRestricted)
	}
	return finding
}

func seccompFinding() Finding {
	return Finding{Layer: "seccomp", Problem: "There is no table of system calls for " + runtime.GOARCH + ".",
		Remedy: "Use a machine with an x86-64 or arm64 processor, or a container driver."}
}

func alreadyFound(findings []Finding, finding Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Layer == finding.Layer })
}

func setting(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// inContainer recognises the usual container runtimes by what they leave, and
// the rest by the filter that they install.
func inContainer() bool {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			return true
		}
	}
	for line := range strings.Lines(setting("/proc/self/status")) {
		if value, ok := strings.CutPrefix(line, "Seccomp:"); ok {
			return strings.TrimSpace(value) == "2"
		}
	}
	return false
}
