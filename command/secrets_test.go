// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/test/process"
)

// wrapped returns a text in base64, in lines of 64 characters.
func wrapped(text string) string {
	s := base64.StdEncoding.EncodeToString([]byte(text))
	var b strings.Builder
	for len(s) > 64 {
		b.WriteString(s[:64] + "\n")
		s = s[64:]
	}
	return b.String() + s + "\n"
}

// TestSecretsStayWhereTheyAre sends secrets through a gateway that is a process, in the forms in which Machines have
// them: neither its recording, nor its answer, log or bug report has one, and what is none is in all of them.
func TestSecretsStayWhereTheyAre(t *testing.T) {
	const planted = "s3cr3t-of-a-test"
	kubeconfig := "apiVersion: v1\nkind: Config\nusers:\n- name: admin\n  user:\n    client-key-data: " + planted +
		"-of-a-key\n    token: " + planted + "-token\n"
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(w, "#cloud-config\nusers:\n- name: capi\n  passwd: "+planted+"\n")
	_ = w.Close()
	hidden := base64.StdEncoding.EncodeToString(zipped.Bytes())
	const ordinary = `files[0]: "/etc/passwd": must be absolute`
	message := ordinary + ": refused with api_key: " + planted + ", and\n" + wrapped(kubeconfig)
	extension := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.HasSuffix(r.URL.Path, "/discovery") {
			_, _ = io.WriteString(w, `{"status":"Success","handlers":[`+commandtest.Offer("b", "BeforeClusterCreate")+`]}`)
			return
		}
		quoted, _ := json.Marshal(message) // a string is never an error
		_, _ = io.WriteString(w, `{"status":"Failure","message":`+string(quoted)+`,"retryAfterSeconds":0}`)
	}))
	t.Cleanup(extension.Close)
	dir := filepath.Join(t.TempDir(), "recording")
	g, client := commandtest.ServeInFrontOf(t, extension, "--record", dir)
	content, _ := json.Marshal(wrapped(kubeconfig))
	body := `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRequest","cluster":{` +
		`"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c","namespace":"n"},"spec":{"topology":{"variables":[` +
		`{"name":"files","value":[{"path":"/etc/a","content":` + string(content) + `},{"path":"/etc/b","encoding":"gzip+base64","content":"` + hidden + `"}]},` +
		`{"name":"objects","value":[{"kind":"Secret","stringData":{"a":"` + planted + `"}}]},{"name":"note","value":` + `"` +
		strings.ReplaceAll(ordinary, `"`, `\"`) + `"}]}}}}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+g.HTTPS+commandtest.ReplayPrefix+"beforeclustercreate/b.acme", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	process.Eventually(t, "the call is written", func() bool { return strings.Count(commandtest.Recorded(t, dir), "\n") == 1 })
	file := filepath.Join(t.TempDir(), "report.zip")
	if got := commandtest.Hookgate(t, "", "bug-report", "--diagnostics", "http://"+g.Diagnostics, "-f", file); got.Code != cmdline.ExitDone {
		t.Fatalf("exit status %d: %s%s", got.Code, got.Out, got.ErrOut)
	}
	var report strings.Builder
	for _, content := range commandtest.Unzip(t, file) {
		report.WriteString(content)
	}
	for place, text := range map[string]string{
		"answer": string(answer), "recording": commandtest.Recorded(t, dir), "log": g.Output(), "bug report": report.String(),
	} {
		for what, secret := range map[string]string{
			"text": planted, "gzip": hidden[:40], "base64": strings.SplitN(wrapped(kubeconfig), "\n", 3)[1],
		} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s has the secret in %s:\n%s", place, what, text)
			}
		}
		if !strings.Contains(text, `/etc/passwd`) || !strings.Contains(text, "must be absolute") {
			t.Errorf("the %s lacks what is no secret:\n%s", place, text)
		}
	}
}
