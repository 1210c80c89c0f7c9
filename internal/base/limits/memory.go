// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import "time"

// The limits of the memory that calls share, and of work with large bodies. internal/base/memory sets the budget,
// internal/network/budget shares it and says why it does so as it does. Shares are in percent.
const (
	// BudgetShare is the part of the process's memory that is for calls, at most LargestBudget. LeastBudget has room for
	// one call of full size; with less, such calls are refused. LargestBudgetShare is the part beyond which a budget that
	// is set is warned about: an idle gateway has 12 MiB of its own, and garbage comes to a part of what calls have.
	BudgetShare        = 50
	LargestBudgetShare = 75
	LeastBudget        = 96 << 20
	LargestBudget      = 2 << 30
	// HeapShare is the part of the process's memory that Go's heap may take, if GOMEMLIMIT does not say so, and HeapRest
	// what it leaves at least: Go's limit is a soft one, which a body exceeds while garbage is collected. In a Pod with
	// 64 MiB, of which the heap had 48 and calls 32, 20 callers of 15 MiB ended a hub in most runs.
	// ProgramHeap is the part of the heap that is not for calls, whatever their share: an idle hub has 18 MiB, and some is
	// garbage that is not collected yet.
	HeapShare   = 90
	HeapRest    = 24 << 20
	ProgramHeap = 26 << 20
	// UnlimitedPart is the part of the machine's memory that a process without a limit has for calls, one of so many, and
	// LargestUnlimited the most it may be.
	UnlimitedPart    = 16
	LargestUnlimited = 512 << 20
	// CallerShare and ExtensionShare are the parts of the budget that one caller and one extension may have.
	CallerShare    = 75
	ExtensionShare = 40
	// AdmittedShare is the part of the budget up to which calls are admitted, and GrownShare that up to which those that
	// were admitted get more. The rest is for small calls: AdmittedLittleShare is the part for calls of at most
	// LittleCallBytes, and AdmittedSmallShare that for calls of at most SmallCallBytes.
	AdmittedShare       = 80
	GrownShare          = 90
	AdmittedLittleShare = 95
	AdmittedSmallShare  = 100
	LittleCallBytes     = 320 << 10
	SmallCallBytes      = 64 << 10
	// MemoryWaits is the number of calls that wait for memory, SmallMemoryWaits that of small ones besides, and
	// OwnMemoryWaits that of one caller or extension. MemoryWait is how long one waits at most.
	MemoryWaits      = 128
	SmallMemoryWaits = 512
	OwnMemoryWaits   = 64
	MemoryWait       = 5 * time.Second
	// KeptShare is the part of the budget that kept answers may have, and KeptBelow the part below which calls must be.
	KeptShare = 12
	KeptBelow = 50
	// CachedPart is the part of CachedBytes that one answer may have: one of so many.
	CachedPart = 4
	// UnsizedWait is how long a message over gRPC may take to arrive before it counts as one of BodyBytes: its size is not
	// known before. At 10 Gbit/s, 120 MiB arrive meanwhile, which the half that is not for calls has room for.
	UnsizedWait = 100 * time.Millisecond
	// HeavyBytes is the size of a body from which on work with it takes turns, HeavyTurn the length of a turn while others
	// wait, and HeavyQuiet how long no small call may have ended before such work has all processors. A body of 5 MB takes
	// 10 ms of work: without turns, a few of them hold up thousands of small calls. Beside 12 calls of a rule for
	// topologies, on two processors, the p99 of small calls was 171 to 262 ms without turns, and is 1 to 4 ms.
	HeavyBytes = 256 << 10
	HeavyTurn  = 2 * time.Millisecond
	HeavyQuiet = 100 * time.Millisecond
)
