package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch       = unix.AUDIT_ARCH_AARCH64
	sysOpenTreeAttr = 467
)

// forbiddenHere are the calls that only this architecture has.
var forbiddenHere []uint32

// This architecture has none of the elder calls.
var (
	brokeredHere      []brokered
	withoutBrokerHere []uint32
)
