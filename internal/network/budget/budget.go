// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget bounds the memory that calls in flight take together: whoever is about to allocate for a call reserves
// the bytes first. Each caller and each extension has an account, which never has more than its share, so that one that
// is slow or hostile leaves room for the others. Accounts also take turns with heavy work, which leaves one processor
// to small calls.
//
// A call waits for its first memory, until its body has begun to come. One that has more than a little never waits: two
// calls that hold what the other one waits for would deadlock. That is why package semaphore of golang.org/x/sync
// does not fit: it refuses even the smallest amount as long as anything waits.
//
// The suite of faults sends 19 MiB from 500 callers of one host, and of 500 hosts, to an extension that does not
// answer, beside healthy calls and within 512 MiB. An account that had all of the budget would leave these nothing.
//
// Errors are of kind Overloaded or Canceled. All types are safe for concurrent use, and a nil Budget or Reservation
// bounds nothing.
package budget

import (
	"context"
	"sync"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

const (
	// MinLimit is the least budget that has room for one call with the largest request and answer.
	MinLimit = limits.LeastBudget
	// leastLimit is the least budget at all: enough for a few small calls.
	leastLimit = 4 << 20

	// callerShare and extensionShare are the parts of the budget, in percent, that one account may have. The second is
	// the less of both, because calls to one extension come from one caller as a rule, which needs room for calls to the
	// others.
	callerShare    = limits.CallerShare
	extensionShare = limits.ExtensionShare
	// admission is the part of the budget, in percent, up to which calls that need much are admitted, and growth that up
	// to which they get more, so that they rarely fail halfway. Others neither wait behind them nor find the rest taken:
	// littleAdmission is for those whose body has begun to come, and may have to wait for the rest, and firstAdmission for
	// those that need no more than CallBytes.
	admission       = limits.AdmittedShare
	growth          = limits.GrownShare
	littleAdmission = limits.AdmittedLittleShare
	firstAdmission  = limits.AdmittedSmallShare

	// CallBytes is what each call reserves before its body has begun to come. It is enough for a small call.
	CallBytes = limits.SmallCallBytes

	// MaxWaitingShare bounds the calls of one account that wait, and maxWaiting those of all that need more than
	// CallBytes. They may wait for seconds, with some memory. Calls that need no more get it as soon as another small call
	// ends, and have nothing yet: maxWaitingFirst bounds them, so that large calls of many callers do not refuse them.
	MaxWaitingShare = limits.OwnMemoryWaits
	maxWaiting      = limits.MemoryWaits
	maxWaitingFirst = limits.SmallMemoryWaits
	// littleHeld is the number of bytes up to which a call that has memory may wait for more: for its body, once the
	// first of it has come. All that may wait hold less than half of the least budget.
	littleHeld = limits.LittleCallBytes
	// maxWait is how long a call waits if its deadline allows it.
	maxWait = limits.MemoryWait
	// retryAfter is when a refused call may try again.
	retryAfter = time.Second
)

// Account is a caller or an extension.
type Account struct {
	extension bool
	name      string
}

// Caller returns the account of a caller: its identity, or its host if that is unknown.
func Caller(name string) Account { return Account{name: name} }

// Extension returns the account of the extension with that name.
func Extension(name string) Account { return Account{extension: true, name: name} }

// Budget is the memory for all calls. Use New.
type Budget struct {
	limit int64

	mu       sync.Mutex
	used     int64
	accounts map[Account]*account // those with reservations or waiting calls
	waiting  []*waiter            // first come, first served
	first    int                  // of them, those that need no more than CallBytes
	refused  [reasons]int64

	scheduler *scheduler
}

type account struct {
	used    int64
	waiting int
}

// waiter is a call that waits for its first reservation.
type waiter struct {
	account Account
	bytes   int64
	granted chan struct{} // closed with the lock held
}

// first returns 1 if the call needs no more than CallBytes, and otherwise 0.
func (w *waiter) first() int {
	if w.bytes <= CallBytes {
		return 1
	}
	return 0
}

// New returns a budget of so many bytes. With less than MinLimit, the largest calls are refused: memory that is not
// there would end the process, and all calls with it.
func New(limit int64) *Budget {
	return &Budget{limit: max(limit, leastLimit), accounts: map[Account]*account{}, scheduler: newScheduler()}
}

// Reserve reserves memory for a call, and waits for it until half the time to the deadline of ctx has passed, and at
// most 5 s. The caller releases the reservation when the call has ended.
func (b *Budget) Reserve(ctx context.Context, who Account, bytes int64) (*Reservation, error) {
	if b == nil {
		return nil, nil
	}
	b.mu.Lock()
	if err := b.holds(bytes); err != nil {
		b.mu.Unlock()
		return nil, err
	}
	if (len(b.waiting) == 0 || bytes <= littleHeld) && b.admits(who, bytes) == nothing {
		b.take(who, bytes)
		b.mu.Unlock()
		return &Reservation{budget: b, account: who, held: bytes}, nil
	}
	w, err := b.enqueue(who, bytes)
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := b.wait(ctx, w); err != nil {
		return nil, err
	}
	return &Reservation{budget: b, account: who, held: bytes}, nil
}

// holds returns an error if a call of so many bytes would not fit if it were the only one.
func (b *Budget) holds(bytes int64) error {
	if bytes <= b.limit {
		return nil
	}
	b.refused[totalUsed]++
	return hook.Errorf(hook.TooLarge, "the call needs more memory than the %d MiB that the gateway has for all calls: "+
		"give the gateway more memory", b.limit>>20)
}

// enqueue adds a waiter at the end, and grants what can be granted.
func (b *Budget) enqueue(who Account, bytes int64) (*waiter, error) {
	a := b.accountOf(who)
	full := len(b.waiting)-b.first >= maxWaiting
	if bytes <= CallBytes {
		full = b.first >= maxWaitingFirst
	}
	if full || a.waiting >= MaxWaitingShare {
		b.drop(who, a)
		return nil, b.refuse(queueFull)
	}
	w := &waiter{account: who, bytes: bytes, granted: make(chan struct{})}
	a.waiting++
	b.waiting = append(b.waiting, w)
	b.first += w.first()
	b.grant()
	return w, nil
}

// wait returns when w has its memory, and otherwise removes it from the queue.
func (b *Budget) wait(ctx context.Context, w *waiter) error {
	patience := maxWait
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(end)/2)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	case <-timer.C:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.granted:
		if ctx.Err() == nil {
			return nil
		}
		b.give(w.account, w.bytes)
	default:
		b.remove(w)
	}
	if ctx.Err() == context.Canceled {
		return hook.Errorf(hook.Canceled, "the caller left while its call waited for memory").WithCause(ctx.Err())
	}
	why := b.admits(w.account, w.bytes)
	if why == nothing { // freed at this moment
		why = totalUsed
	}
	return b.refuse(why)
}

// remove removes a waiter, which may have kept those after it from being served.
func (b *Budget) remove(w *waiter) {
	for i, other := range b.waiting {
		if other == w {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			b.first -= w.first()
			break
		}
	}
	a := b.accountOf(w.account)
	a.waiting--
	b.drop(w.account, a)
	b.grant()
}

// grant serves those that wait, in their order. One whose account has its share already is passed over. One for which
// there is not enough memory keeps those after it waiting, or it might never be served.
func (b *Budget) grant() {
	left, blocked := b.waiting[:0], false
	for _, w := range b.waiting {
		why := b.admits(w.account, w.bytes)
		if why != nothing || blocked && w.bytes > littleHeld {
			blocked = blocked || why == totalUsed
			left = append(left, w)
			continue
		}
		b.accountOf(w.account).waiting--
		b.first -= w.first()
		b.take(w.account, w.bytes)
		close(w.granted)
	}
	clear(b.waiting[len(left):])
	b.waiting = left
}

// admits returns what keeps a call of that account from being admitted now. An account without
// reservations may exceed its share, and an unused budget its limit: what no other can disturb is never refused.
func (b *Budget) admits(who Account, bytes int64) reason {
	part := int64(admission)
	switch {
	case bytes <= CallBytes:
		part = firstAdmission
	case bytes <= littleHeld:
		part = littleAdmission
	}
	if b.used > 0 && b.used+bytes > b.limit*part/100 {
		return totalUsed
	}
	return b.share(who, bytes)
}

// grows returns what keeps a call of that account, which holds some memory, from having more of it now.
func (b *Budget) grows(who Account, held, bytes int64) reason {
	if b.used+bytes > b.limit || b.used > held && b.used+bytes > b.limit*growth/100 {
		return totalUsed
	}
	if a := b.accounts[who]; a == nil || a.used <= held {
		return nothing
	}
	return b.share(who, bytes)
}

func (b *Budget) share(who Account, bytes int64) reason {
	a := b.accounts[who]
	switch {
	case a == nil || a.used == 0:
		return nothing
	case who.extension && a.used+bytes > b.limit*extensionShare/100:
		return extensionUsed
	case !who.extension && a.used+bytes > b.limit*callerShare/100:
		return callerUsed
	}
	return nothing
}

// take and give move bytes to an account and back.
func (b *Budget) take(who Account, bytes int64) {
	b.used += bytes
	b.accountOf(who).used += bytes
}

func (b *Budget) give(who Account, bytes int64) {
	b.used -= bytes
	a := b.accountOf(who)
	a.used -= bytes
	b.drop(who, a)
	if len(b.waiting) > 0 {
		b.grant()
	}
}

func (b *Budget) accountOf(who Account) *account {
	a := b.accounts[who]
	if a == nil {
		a = &account{}
		b.accounts[who] = a
	}
	return a
}

// drop forgets an account that nothing refers to.
func (b *Budget) drop(who Account, a *account) {
	if a.used == 0 && a.waiting == 0 {
		delete(b.accounts, who)
	}
}
