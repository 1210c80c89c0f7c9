// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"io"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // so that gRPC announces gzip, and compresses answers to requests that were
	"google.golang.org/grpc/mem"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/body"
)

// gRPC inflates a message before anybody can reserve memory for it. So it gets a decompressor that leaves messages as
// they are, and the codec inflates them, within the memory of the call. Both know each other for gzip by its first
// bytes, with which no message begins: there is no field of type 7.
var magic = []byte{0x1f, 0x8b}

// ServerOptions returns the options of a server that receives each of its large messages into a Message. All others are
// limited to limits.SideMessageBytes.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(bounded()),
		grpc.RPCDecompressor(unchanged{}), //nolint:staticcheck // the registry of compressors is that of the whole program
	}
}

// DialOptions returns the same for the connections of a client.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(bounded())),
		grpc.WithDecompressor(unchanged{}), //nolint:staticcheck // as above
	}
}

func bounded() Codec {
	c := New()
	c.most = limits.SideMessageBytes
	return c
}

// unchanged is a grpc.Decompressor that leaves messages compressed.
type unchanged struct{}

// Type implements grpc.Decompressor.
func (unchanged) Type() string { return "gzip" }

// Do implements grpc.Decompressor. It copies what gRPC has limited to the size of the largest message.
func (unchanged) Do(r io.Reader) ([]byte, error) {
	size := 0
	if known, ok := r.(*mem.Reader); ok {
		size = known.Remaining()
	}
	b := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead)) // with room to see the end
	if _, err := b.ReadFrom(r); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(b.Bytes(), magic) {
		return nil, gzip.ErrHeader
	}
	return b.Bytes(), nil
}

// isZipped reports whether unchanged has returned a message.
func isZipped(data mem.BufferSlice) bool {
	return len(data) == 1 && bytes.HasPrefix(data[0].ReadOnlyData(), magic)
}

// inflate reads a compressed message.
func (b *Message) inflate(data mem.BufferSlice, pool *body.Pool) error {
	if err := b.reserve(int64(data.Len())); err != nil {
		return err
	}
	guard := body.Guard{Reserve: b.Reserve}
	if b.Work != nil {
		guard.Work = b.Work
	}
	reader := body.Reader{Max: cmp.Or(b.Max, limits.BodyBytes), Pool: pool}
	inflated, err := reader.Read(bytes.NewReader(data[0].ReadOnlyData()), -1, "gzip", guard)
	if err != nil {
		return err
	}
	defer inflated.Release()
	b.Size = len(inflated.Bytes)
	if err := b.reserve(int64(b.Size)); err != nil {
		return err
	}
	if err := b.begin(); err != nil {
		return err
	}
	defer b.Work.End()
	return b.read(inflated.Bytes)
}
