// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestManPages checks that each command has a page, what is in one, and that they are the same each time.
func TestManPages(t *testing.T) {
	pages, err := ManPages("v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hookgate.1", "hookgate-serve.1", "hookgate-get-routes.1", "hookgate-completion-bash.1"} {
		if len(pages[name]) == 0 {
			t.Errorf("there is no %s", name)
		}
	}
	page := string(pages["hookgate-get-routes.1"])
	for _, want := range []string{
		`.TH "HOOKGATE-GET-ROUTES" "1" "" "hookgate v1.2.3" "Hookgate"`, "hookgate get routes NAMESPACE/CLUSTER",
		`\fB--diagnostics\fP="http://127.0.0.1:8443"`, `\fBhookgate-get(1)\fP`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("hookgate-get-routes.1 lacks %s:\n%s", want, page)
		}
	}
	for name, page := range pages {
		if !bytes.HasPrefix(page, []byte(".nh\n.TH ")) {
			t.Errorf("%s begins with %.40q", name, page)
		}
	}
	again, err := ManPages("v1.2.3")
	if diff := cmp.Diff(pages, again); diff != "" || err != nil {
		t.Errorf("a second time: %v\n%s", err, diff)
	}
}
