package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// In the tiers without a file system of their own, commands of a bot that runs
// as root have another identity than the bot and must still get to the
// workspace, which often lies below a directory that is closed to others. A
// passage is one entry in such a directory's access control list: this one
// user may pass, and may not list it. What lies in the directory stays out
// of reach, because Landlock opens only what is in its rules.

// A passage remembers where an entry was added.
type passage struct {
	dir string
	uid uint32
}

// openPassages lets the user pass every directory on the way to the paths, and
// returns what it has changed, also when it fails.
func openPassages(paths []string, uid int) ([]passage, error) {
	var opened []passage
	for _, path := range paths {
		for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			if err != nil {
				return opened, fmt.Errorf("look at %s: %w", dir, err)
			}
			p := passage{dir, uint32(uid)}
			if info.Mode().Perm()&0o001 != 0 || slices.Contains(opened, p) {
				continue
			}
			if err := editACL(dir, p.add); err != nil {
				return opened, fmt.Errorf("user %d may not pass %s on the way to %s (allow it with: chmod o+x %s): %w", uid, dir, path, dir, err)
			}
			opened = append(opened, p)
		}
	}
	return opened, nil
}

func closePassages(opened []passage) error {
	var errs []error
	for _, p := range opened {
		if err := editACL(p.dir, p.remove); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("close %s to user %d: %w", p.dir, p.uid, err))
		}
	}
	return errors.Join(errs...)
}

// An aclEntry is one line of an access control list, as the kernel's
// posix_acl_xattr.h lays it out.
type aclEntry struct {
	Tag, Perm uint16
	ID        uint32
}

const (
	aclVersion   = 2
	aclUserObj   = 0x01
	aclUser      = 0x02
	aclGroupObj  = 0x04
	aclGroup     = 0x08
	aclMask      = 0x10
	aclOther     = 0x20
	aclUndefined = 0xffffffff
	aclExecute   = 1
	aclAttribute = "system.posix_acl_access"
)

var errMasked = errors.New("the directory's access control list has a mask that forbids passing")

// add returns the list with the passage in it.
func (p passage) add(list []aclEntry) ([]aclEntry, error) {
	list = slices.DeleteFunc(slices.Clone(list), p.is)
	if mask := slices.IndexFunc(list, func(e aclEntry) bool { return e.Tag == aclMask }); mask < 0 {
		group := list[slices.IndexFunc(list, func(e aclEntry) bool { return e.Tag == aclGroupObj })]
		list = append(list, aclEntry{aclMask, group.Perm | aclExecute, aclUndefined})
	} else if list[mask].Perm&aclExecute == 0 {
		return nil, errMasked
	}
	return append(list, aclEntry{aclUser, aclExecute, p.uid}), nil
}

// remove returns the list without the passage, and without the mask that only
// the passage needed.
func (p passage) remove(list []aclEntry) ([]aclEntry, error) {
	list = slices.DeleteFunc(slices.Clone(list), p.is)
	named := func(e aclEntry) bool { return e.Tag == aclUser || e.Tag == aclGroup }
	if !slices.ContainsFunc(list, named) {
		list = slices.DeleteFunc(list, func(e aclEntry) bool { return e.Tag == aclMask })
	}
	return list, nil
}

func (p passage) is(e aclEntry) bool { return e.Tag == aclUser && e.ID == p.uid }

// editACL changes a directory's list. The directory is locked meanwhile, since
// sandboxes of several processes may pass through the same one.
func editACL(dir string, edit func([]aclEntry) ([]aclEntry, error)) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	fd := int(file.Fd())
	if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
		return err
	}
	list, err := readACL(fd)
	if err != nil {
		return err
	}
	if list, err = edit(list); err != nil {
		return err
	}
	return unix.Fsetxattr(fd, aclAttribute, encodeACL(list), 0)
}

// readACL returns a directory's list, made from its mode if it has none.
func readACL(fd int) ([]aclEntry, error) {
	buffer := make([]byte, 64<<10)
	n, err := unix.Fgetxattr(fd, aclAttribute, buffer)
	if err == nil {
		return decodeACL(buffer[:n])
	}
	if !errors.Is(err, unix.ENODATA) {
		return nil, err
	}
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return nil, err
	}
	mode := uint16(info.Mode)
	return []aclEntry{
		{aclUserObj, mode >> 6 & 7, aclUndefined}, {aclGroupObj, mode >> 3 & 7, aclUndefined}, {aclOther, mode & 7, aclUndefined},
	}, nil
}

func decodeACL(data []byte) ([]aclEntry, error) {
	if len(data) < 4 || binary.LittleEndian.Uint32(data) != aclVersion {
		return nil, errors.New("an access control list of an unknown version")
	}
	list := make([]aclEntry, (len(data)-4)/8)
	_, err := binary.Decode(data[4:], binary.LittleEndian, list)
	return list, err
}

// encodeACL writes a list in the order that the kernel asks for.
func encodeACL(list []aclEntry) []byte {
	slices.SortFunc(list, func(a, b aclEntry) int {
		if a.Tag != b.Tag {
			return int(a.Tag) - int(b.Tag)
		}
		return int(int64(a.ID) - int64(b.ID))
	})
	data := binary.LittleEndian.AppendUint32(nil, aclVersion)
	for _, entry := range list {
		data = binary.LittleEndian.AppendUint16(data, entry.Tag)
		data = binary.LittleEndian.AppendUint16(data, entry.Perm)
		data = binary.LittleEndian.AppendUint32(data, entry.ID)
	}
	return data
}
