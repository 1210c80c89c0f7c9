// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

// A goroutine begins with 2 KiB of stack, and copies it, frame by frame, each time that it doubles. The functions here
// grow the stack of one that has just begun, while there is next to nothing on it.

// stackRoom is about how much stack the chain and a transport take, and frontRoom what the front takes besides.
const (
	stackRoom = 8 << 10
	frontRoom = 8 << 10
)

// growStack makes room for the call of a handler. Without it, copies of stacks were a quarter of the CPU of a call to
// 50 handlers; BenchmarkDispatch with ten handlers shows it.
//
//go:noinline
func growStack(i int) byte {
	var room [stackRoom]byte
	return room[i]
}

// growFrontStack makes room for a whole call. Over HTTP/2, each has a goroutine of its own.
//
//go:noinline
func growFrontStack(i int) byte {
	var room [stackRoom + frontRoom]byte
	return room[i]
}
