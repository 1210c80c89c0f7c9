// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"strings"
	"testing"
	"time"
)

func TestFind(t *testing.T) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		<-end
		close(ended)
	}()
	if err := find(0); err == nil || !strings.Contains(err.Error(), "TestFind") {
		t.Errorf("a goroutine that stays: %v", err)
	}
	time.AfterFunc(2*time.Second, func() { close(end) }) // goleak alone waits for less
	if err := Find(); err != nil {
		t.Errorf("a goroutine that ends: %v", err)
	}
	<-ended
}
