// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/test/process"
)

// TestOtherLanguage follows the page about other languages: its protoc line, and its extension behind a gateway.
func TestOtherLanguage(t *testing.T) {
	ruby := process.Program(t, "HOOKGATE_RUBY")
	page, err := os.ReadFile("../../docs/other-languages.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := func(pattern string) string {
		found := regexp.MustCompile("(?ms)^```"+pattern+"\n(.*?)^```$").FindAllSubmatch(page, -1)
		if len(found) != 1 {
			t.Fatalf("the page has %d blocks of %s, want 1", len(found), pattern)
		}
		return string(found[0][1])
	}
	dir := t.TempDir()
	protos, err := filepath.Abs("../../proto")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(protos, filepath.Join(dir, "proto")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-euc", blocks("sh"))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the protoc line: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.rb"), []byte(blocks("ruby file=main.rb")), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	cmd = exec.Command(ruby, "-I", "stubs", "main.rb", address)
	cmd.Dir = dir
	process.Run(t, "main.rb", cmd)
	process.Eventually(t, "main.rb listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})

	g := startGateway(t, fmt.Sprintf(`apiVersion: runtime.cluster.x-k8s.io/v1beta2
kind: ExtensionConfig
metadata: {name: acme}
spec: {clientConfig: {url: "grpc://%s"}}
`, address))
	g.Expect(t, "extension discovered") // it is ready once it has tried
	request := func(labels string) string {
		return `{"cluster":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"a","namespace":"b","labels":` + labels + `}}}`
	}
	for labels, want := range map[string]string{
		`{}`:             `"message":"Cluster a waits for the label team"`,
		`{"team":"red"}`: `"retryAfterSeconds":0`,
	} {
		status, body := g.post(t, "BeforeClusterCreate", "", request(labels))
		if status != http.StatusOK || !strings.Contains(string(body), want) || !strings.Contains(string(body), `"status":"Success"`) {
			t.Errorf("labels %s: %d %s, want %s", labels, status, body, want)
		}
	}
	out, err := exec.Command(gatewayPath(t), "check", "--skip", "answers.quick", "grpc://"+address).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "0 failed, 0 warnings") {
		t.Errorf("hookgate check: %v\n%s", err, out)
	}
}
