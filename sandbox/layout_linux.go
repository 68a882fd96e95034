package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// systemDirs hold programs and libraries. Where one is a symbolic link (merged
// /usr) the link is made anew.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}

// systemFiles are the parts of /etc that programs need and that hold no secret:
// the loader's cache, the choice of alternatives, certificates, time zone.
var systemFiles = []string{
	"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ssl/cert.pem", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted",
	"/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/protocols", "/etc/services",
}

var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

func deviceNodes() []string {
	nodes := make([]string, len(devices))
	for i, name := range devices {
		nodes[i] = "/dev/" + name
	}
	return nodes
}

// syntheticFiles replace those that would tell about the machine.
var syntheticFiles = map[string]string{
	"/etc/passwd":        fmt.Sprintf("root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nsandbox:x:%d:%d:sandbox:%s:/bin/sh\n", insideID, insideID, homePath),
	"/etc/group":         fmt.Sprintf("root:x:0:\nsandbox:x:%d:\n", insideID),
	"/etc/hosts":         "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n",
	"/etc/hostname":      "sandbox\n",
	"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}

const homePath = TempPath + "/home"

// ownWorldLaunch lays out a file system of the sandbox's own.
func (s *localSandbox) ownWorldLaunch() *launch {
	l := &launch{
		Files: syntheticFiles,
		Links: map[string]string{
			"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0",
			"/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
		},
		Readable: []string{"/proc", "/etc"},
		Writable: []string{WorkspacePath, TempPath, "/dev/shm"},
	}
	for _, dir := range systemDirs {
		if target, err := os.Readlink(dir); err == nil {
			l.Links[dir] = target
			continue
		}
		l.mountReadOnly(Mount{Source: dir, Target: dir}, true)
	}
	for _, file := range systemFiles {
		l.mountReadOnly(Mount{Source: file, Target: file}, true)
	}
	for _, node := range deviceNodes() {
		l.Mounts = append(l.Mounts, bind{Source: node, Target: node, Device: true, Optional: true})
	}
	for _, mount := range s.spec.ReadOnly {
		l.mountReadOnly(mount, false)
	}
	l.Mounts = append(l.Mounts,
		bind{Source: s.spec.Workspace, Target: WorkspacePath, Writable: true},
		bind{Source: s.temp, Target: TempPath, Writable: true})
	for _, mount := range s.spec.Writable {
		l.Mounts = append(l.Mounts, bind{Source: mount.Source, Target: mount.Target, Writable: true})
		l.Writable = append(l.Writable, mount.Target)
	}
	// A mount inside of another one comes after it.
	slices.SortStableFunc(l.Mounts, func(a, b bind) int { return len(a.Target) - len(b.Target) })
	return l
}

func (l *launch) mountReadOnly(mount Mount, optional bool) {
	if optional {
		resolved, err := filepath.EvalSymlinks(mount.Source)
		if err != nil {
			return
		}
		mount.Source = resolved
	}
	l.Mounts = append(l.Mounts, bind{Source: mount.Source, Target: mount.Target, Optional: optional})
	l.Readable = append(l.Readable, mount.Target)
}

// sharedWorldLaunch says what commands may open of the host's file system.
func (s *localSandbox) sharedWorldLaunch() *launch {
	l := &launch{Writable: []string{s.spec.Workspace, s.temp}}
	for _, path := range slices.Concat(systemDirs, systemFiles, []string{"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf"}) {
		if _, err := os.Stat(path); err == nil {
			l.Readable = append(l.Readable, path)
		}
	}
	for _, mount := range s.spec.ReadOnly {
		l.Readable = append(l.Readable, mount.Source)
	}
	for _, mount := range s.spec.Writable {
		l.Writable = append(l.Writable, mount.Source)
	}
	return l
}
