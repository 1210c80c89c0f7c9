// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overhead

import (
	"encoding/binary"
	"iter"

	"golang.org/x/net/http2"
)

// headerSize is the size of the header of a frame.
const headerSize = 9

// Frame is the header of a frame.
type Frame struct {
	Type   http2.FrameType
	Flags  http2.Flags
	Stream uint32
	// Left is how much of the payload is still to come, after the piece.
	Left int
	// Begins is set in the first piece of a frame, which comes with the header.
	Begins bool
}

// Frames follows the frames in one direction of a connection, in whatever pieces they come. Whether they are right is
// judged by whoever reads them. Its zero value is before the first frame.
type Frames struct {
	frame   Frame
	preface int // how much of it is still to come
	header  [headerSize]byte
	filled  int // of the header
}

// FramesOfClient returns Frames before the preface of a client.
func FramesOfClient() Frames { return Frames{preface: len(http2.ClientPreface)} }

// Follow returns the frames that p has a piece of, with that piece of their payload.
func (f *Frames) Follow(p []byte) iter.Seq2[Frame, []byte] {
	return func(yield func(Frame, []byte) bool) {
		n := min(f.preface, len(p))
		f.preface, p = f.preface-n, p[n:]
		for len(p) > 0 {
			if f.frame.Left == 0 {
				n = copy(f.header[f.filled:], p)
				f.filled += n
				p = p[n:]
				if f.filled < headerSize {
					return
				}
				f.filled = 0
				f.frame = frameOf(f.header)
			}
			piece := p[:min(f.frame.Left, len(p))]
			f.frame.Left -= len(piece)
			p = p[len(piece):]
			frame := f.frame
			f.frame.Begins = false
			if !yield(frame, piece) {
				return
			}
		}
	}
}

func frameOf(header [headerSize]byte) Frame {
	return Frame{
		Left: int(header[0])<<16 | int(header[1])<<8 | int(header[2]), Type: http2.FrameType(header[3]),
		Flags: http2.Flags(header[4]), Stream: binary.BigEndian.Uint32(header[5:]) &^ (1 << 31), Begins: true,
	}
}
