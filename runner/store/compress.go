package store

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxContent is the longest contents that are read back, in bytes: a bound for
// what a damaged database can make us unpack.
const maxContent = 1 << 30

// packer and unpacker are shared: both may be used concurrently, and are made
// when a checkpoint is first written or read, because they take some megabytes.
var (
	packer = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	})
	unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxContent))
	})
)

// pack compresses the contents of a file; a checkpoint is written after every
// call that changes files.
func pack(content []byte) ([]byte, error) {
	encoder, err := packer()
	if err != nil {
		return nil, err
	}
	return encoder.EncodeAll(content, nil), nil
}

// unpack undoes pack.
func unpack(packed []byte) ([]byte, error) {
	decoder, err := unpacker()
	if err != nil {
		return nil, err
	}
	content, err := decoder.DecodeAll(packed, []byte{})
	if err != nil {
		return nil, fmt.Errorf("unpack the contents of a file: %w", err)
	}
	return content, nil
}
