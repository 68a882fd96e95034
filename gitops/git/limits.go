package git

// Limits bound what one repository may cost. A zero field takes the default.
type Limits struct {
	// FetchBytes is the most that one fetch may receive. Default 2 GiB.
	FetchBytes int64
	// CachePacks and CacheBytes are what a cached repository may grow to before
	// it is built anew from the commits that are in use. Default 50 packs (each
	// fetch brings one, and every look-up may ask each) and 4 GiB.
	CachePacks int
	CacheBytes int64
	// Files is the most files, and the most directories, that a checkout or a scan
	// may hold. Default 250,000.
	Files int
	// Bytes is the most bytes a checkout may write. Default 4 GiB.
	Bytes int64
	// FileBytes is the largest file of a checkout. Default 100 MiB, which is
	// also the largest that GitHub accepts.
	FileBytes int64
	// Depth is the deepest directory. Default 200; one descriptor is open per
	// level, so it stays well below the usual limit of 1,024.
	Depth int
	// ChangedFileBytes is the largest file that a session may add or modify.
	// Default 10 MiB.
	ChangedFileBytes int64
	// ChangedBytes is the most that a session may add or modify in all.
	// Default 100 MiB. Packs are built in memory, so this bounds a push as well.
	ChangedBytes int64
	// DiffBytes is where the text of a diff is cut. Default 1 MiB.
	DiffBytes int
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.FetchBytes, 2<<30)
	setDefault(&l.CachePacks, 50)
	setDefault(&l.CacheBytes, 4<<30)
	setDefault(&l.Files, 250_000)
	setDefault(&l.Bytes, 4<<30)
	setDefault(&l.FileBytes, 100<<20)
	setDefault(&l.Depth, 200)
	setDefault(&l.ChangedFileBytes, 10<<20)
	setDefault(&l.ChangedBytes, 100<<20)
	setDefault(&l.DiffBytes, 1<<20)
	return l
}

func setDefault[T int | int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
