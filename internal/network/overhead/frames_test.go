// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overhead

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
)

// whole is a frame with its payload.
type whole struct {
	Type    http2.FrameType
	Flags   http2.Flags
	Stream  uint32
	Payload string
}

// In whatever pieces frames come, each is found with its payload.
func TestFollow(t *testing.T) {
	var sent bytes.Buffer
	sent.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&sent, nil)
	framer.AllowIllegalWrites = true
	var want []whole
	for i := range uint32(100) {
		data := bytes.Repeat([]byte("x"), int(i*i))
		if err := errors.Join(
			framer.WriteSettingsAck(), framer.WriteData(i, i%2 == 0, data), framer.WriteRSTStream(1<<31-1, http2.ErrCodeCancel),
			framer.WriteData(1<<31|1, false, nil),
		); err != nil {
			t.Fatal(err)
		}
		want = append(want, whole{http2.FrameSettings, http2.FlagSettingsAck, 0, ""},
			whole{http2.FrameData, http2.Flags((i + 1) % 2), i, string(data)},
			whole{http2.FrameRSTStream, 0, 1<<31 - 1, "\x00\x00\x00\x08"}, whole{http2.FrameData, 0, 1, ""})
	}
	for _, piece := range []int{1, 2, 8, 9, 10, 1000, sent.Len()} {
		f := FramesOfClient()
		var got []whole
		for rest := sent.Bytes(); len(rest) > 0; {
			n := min(piece, len(rest))
			for frame, payload := range f.Follow(rest[:n]) {
				if frame.Begins {
					got = append(got, whole{Type: frame.Type, Flags: frame.Flags, Stream: frame.Stream})
				}
				got[len(got)-1].Payload += string(payload)
			}
			rest = rest[n:]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in pieces of %d (-want +got):\n%s", piece, diff)
		}
	}
}
