// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversion

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/hookgate/hookgate/catalog"
)

// maxWarnings bounds the warnings of an answer, not counting the one that counts the omitted ones.
const maxWarnings = 10

// Warnings collects the warnings about deprecated versions for the caller of one call. The zero value is ready to
// use. It is safe for concurrent use.
type Warnings struct {
	mu    sync.Mutex
	texts []string
}

// AddCaller adds a warning if the version of h that the caller uses is deprecated, and reports whether it is.
func (w *Warnings) AddCaller(h *catalog.Hook) bool {
	since, instead, ok := h.Deprecated()
	if ok {
		w.add(fmt.Sprintf("%s is deprecated since %s of the gateway: call %s", h, since, instead))
	}
	return ok
}

// AddHandler adds a warning if the version of h that a handler implements is deprecated, and reports whether it is.
func (w *Warnings) AddHandler(h *catalog.Hook, handler string) bool {
	since, instead, ok := h.Deprecated()
	if ok {
		w.add(fmt.Sprintf("handler %q implements %s, which is deprecated since %s of the gateway: it should "+
			"implement %s",
			handler, h, since, instead))
	}
	return ok
}

func (w *Warnings) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// Values returns the warnings as values of the HTTP header Warning, 299 - "<text>" in RFC 7234. They are sorted,
// distinct and bounded: a last one counts the omitted ones. Values returns nil without warnings.
func (w *Warnings) Values() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.texts) == 0 {
		return nil
	}
	texts := slices.Sorted(slices.Values(w.texts))
	if n := len(texts) - maxWarnings; n > 0 {
		texts = append(texts[:maxWarnings], fmt.Sprintf("and %d more handlers implement deprecated hooks", n))
	}
	for i, text := range texts {
		texts[i] = "299 - " + strconv.Quote(text)
	}
	return texts
}
