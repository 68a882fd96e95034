package sandbox

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// idRanges are the user and group ids that sandboxes of a bot run by root take,
// in order of preference; the first one that exists here is used. Both are
// unused by systemd's table (systemd.io/UIDS-GIDS): the one between 1879048192
// and 2147483647, and for containers, whose ids end at 65535, the one between
// 60706 and 61183.
var idRanges = []idRange{{1_900_000_000, 100_000_000}, {60706, 478}}

type idRange struct{ first, count int }

// chooseIdentity says who the commands of a session are. An ordinary user's
// commands are that user. Root's get an id of their own, because the kernel
// does not count root's processes, and because Landlock does not keep the owner of
// a file from changing its mode; two sessions rarely share one.
func chooseIdentity(session string) (identity, error) {
	self := identity{UID: os.Geteuid(), GID: os.Getegid()}
	if self.UID != 0 {
		return self, nil
	}
	for _, r := range idRanges {
		if mapped("/proc/self/uid_map", r) && mapped("/proc/self/gid_map", r) {
			if missing := missingCapabilities(unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_CHOWN); missing != "" {
				return self, fmt.Errorf("root without %s", missing)
			}
			id := r.pick(session)
			return identity{UID: id, GID: id, Switch: true}, nil
		}
	}
	if rootIsSomebody() {
		return self, nil
	}
	return self, fmt.Errorf("no user id but root's exists here")
}

func (r idRange) pick(session string) int {
	hash := fnv.New32a()
	hash.Write([]byte(session))
	return r.first + int(hash.Sum32()%uint32(r.count))
}

// idMap calls visit for each line of a uid_map or gid_map file.
func idMap(file string, visit func(inside, outside, count int)) {
	f, err := os.Open(file)
	if err != nil {
		return
	}
	defer f.Close()
	for scanner := bufio.NewScanner(f); scanner.Scan(); {
		var inside, outside, count int
		if _, err := fmt.Sscan(scanner.Text(), &inside, &outside, &count); err == nil {
			visit(inside, outside, count)
		}
	}
}

func mapped(file string, r idRange) bool {
	found := false
	idMap(file, func(inside, _, count int) {
		found = found || inside <= r.first && r.first+r.count <= inside+count
	})
	return found
}

// rootIsSomebody reports whether root is an ordinary user outside, as in a user
// namespace of that user's.
func rootIsSomebody() bool {
	ordinary := false
	idMap("/proc/self/uid_map", func(inside, outside, _ int) {
		ordinary = ordinary || inside == 0 && outside != 0
	})
	return ordinary
}

var capabilityNames = map[int]string{
	unix.CAP_SETUID: "CAP_SETUID", unix.CAP_SETGID: "CAP_SETGID", unix.CAP_CHOWN: "CAP_CHOWN",
}

// missingCapabilities names those that the process does not have.
func missingCapabilities(wanted ...int) string {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return "readable capabilities"
	}
	var missing []string
	for _, capability := range wanted {
		if data[capability/32].Effective&(1<<(capability%32)) == 0 {
			missing = append(missing, capabilityNames[capability])
		}
	}
	return strings.Join(missing, ", ")
}
