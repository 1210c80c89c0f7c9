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

// TestOtherLanguage follows the page about other languages: its protoc line, and the example in Ruby behind a gateway.
func TestOtherLanguage(t *testing.T) {
	ruby := process.Program(t, "HOOKGATE_RUBY")
	page, err := os.ReadFile("../../docs/other-languages.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(language string) string {
		found := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllSubmatch(page, -1)
		if len(found) != 1 {
			t.Fatalf("the page has %d blocks of %s, want 1", len(found), language)
		}
		return string(found[0][1])
	}
	program, err := filepath.Abs("../../examples/ruby/main.rb")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(program); err != nil || !strings.Contains(string(text), block("ruby")) {
		t.Errorf("the page shows code that main.rb does not have (error: %v)", err)
	}
	dir := t.TempDir()
	protos, err := filepath.Abs("../../proto")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(protos, filepath.Join(dir, "proto")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-euc", block("sh"))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the protoc line: %v\n%s", err, out)
	}
	address := freeAddress(t)
	cmd = exec.Command(ruby, "-I", "stubs", program, address)
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
