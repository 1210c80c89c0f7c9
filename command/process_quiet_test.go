// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

// TestQuietEnd logs as a manager does that stops, and checks that only the end of its own lease is left out.
func TestQuietEnd(t *testing.T) {
	var out bytes.Buffer
	log := logr.FromSlogHandler(quietEnd{slog.NewTextHandler(&out, nil)}).WithName("manager").WithValues("a", 1)
	log.Error(errors.New("leader election lost"), "error received after stop sequence was engaged")
	if out.Len() > 0 {
		t.Errorf("logged: %s", &out)
	}
	log.Error(errors.New("webhook failed"), "error received after stop sequence was engaged")
	log.Error(errors.New("leader election lost"), "problem running manager")
	for _, want := range []string{"webhook failed", "problem running manager"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not logged: %s", want, &out)
		}
	}
}
