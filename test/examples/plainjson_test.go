// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPlainJSON follows the page about extensions in plain JSON, word for word, as TestGuide follows the guide: only the
// ports are changed.
func TestPlainJSON(t *testing.T) {
	hookgate := gatewayPath(t)
	sections := readGuide(t, "../../docs/plain-json.md")
	program, err := os.ReadFile("../../examples/plain-json/extension.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		for _, b := range s.blocks {
			if b.language != "sh" && b.language != "text" && !strings.Contains(string(program), b.text) {
				t.Errorf("the page has a block of %s, which is neither run nor part of the program", b.language)
			}
		}
	}
	script, expected := write(sections, "", "curl --silent --cacert tls.crt https://127.0.0.1:9441")
	if len(expected) != 3 {
		t.Fatalf("the page shows %d outputs, want 3", len(expected))
	}
	https, extension := freeAddress(t), freeAddress(t)
	ports := strings.NewReplacer("9441", port(t, extension))
	dir, _ := beside(t)
	follow(t, followed{
		dir: dir, script: script, expected: expected, ports: ports, limit: 3 * time.Minute,
		env: []string{
			"PATH=" + filepath.Dir(hookgate) + ":" + os.Getenv("PATH"), "HOOKGATE_HTTP_ADDRESS=" + https,
			"HOOKGATE_SERVER=https://" + https, "HOOKGATE_GRPC_ADDRESS=" + freeAddress(t),
			"HOOKGATE_DIAGNOSTICS_ADDRESS=" + freeAddress(t),
		},
	})
}
