// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author_test

import (
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/conformance"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// checked is an extension with one handler, of BeforeClusterCreate, which gives the configured answer.
func checked(t *testing.T, answer string) (url, ca string) {
	t.Helper()
	return serveChecked(t, answer, func(h http.Handler) http.Handler { return h })
}

// checkedBy is a good extension behind a wrapper.
func checkedBy(t *testing.T, before func(http.Handler) http.Handler) (url, ca string) {
	t.Helper()
	return serveChecked(t, goodAnswer, before)
}

func serveChecked(t *testing.T, answer string, before func(http.Handler) http.Handler) (url, ca string) {
	t.Helper()
	const prefix = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"
	mux := http.NewServeMux()
	handle := func(path, answer string) {
		mux.HandleFunc("POST "+prefix+path, func(w http.ResponseWriter, r *http.Request) {
			var body map[string]any
			if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 20<<20)).Decode(&body); err != nil {
				answer := `{"status":"Failure","message":"no request"}`
				_, _ = io.WriteString(w, answer)
				return
			}
			_, _ = io.WriteString(w, answer)
		})
	}
	handle("discovery", `{"status":"Success","handlers":[{"name":"create","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"BeforeClusterCreate"},"timeoutSeconds":30}]}`)
	handle("beforeclustercreate/create", answer)
	server := httptest.NewUnstartedServer(before(mux))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return server.URL, ca
}

const (
	goodAnswer    = `{"status":"Success","message":"","retryAfterSeconds":0}`
	brokenAnswer  = `{"status":"Success","message":"","retryAfterSeconds":-5}`
	warningAnswer = `{"status":"Failure","message":"never","retryAfterSeconds":0}`
)

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		reason string
		answer string
		args   []string
		code   int
		out    []string // texts in the output, in any order
		not    string   // a text that is not
		err    string
	}{
		"Good":          {"nothing but the summary", goodAnswer, nil, cmdline.ExitDone, []string{", REST, 1 handler: ", " 0 failed, 0 warnings, "}, "pass ", ""},
		"Verbose":       {"what passes, too", goodAnswer, []string{"-v"}, cmdline.ExitDone, []string{"pass  answers.retry: ", "skip  patches.apply: there is no handler of GeneratePatches"}, "FAIL", ""},
		"Broken":        {"what is wrong, in detail", brokenAnswer, nil, cmdline.ExitFailed, []string{"FAIL  answers.retry (MUST): retryAfterSeconds of an answer is not negative.\n", "handler   create\n", "problem   retryAfterSeconds is -5\n", "sent      POST /hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/create, 3.6 KiB: {", `got       HTTP 200 OK: {"status":"Success"`, "source    Cluster API, api/runtime/hooks/v1alpha1/common_types.go, CommonRetryResponse\n", " 1 failed, "}, "warn  ", "hookgate: the extension does not conform to the contract\n"},
		"Warning":       {"a warning does not count", warningAnswer, nil, cmdline.ExitDone, []string{"warn  answers.success (SHOULD)", " 0 failed, 1 warning, "}, "FAIL", ""},
		"Strict":        {"it does with --strict", warningAnswer, []string{"--strict"}, cmdline.ExitFailed, []string{"warn  answers.success (SHOULD)"}, "", "does not conform to the contract"},
		"Skip":          {"the broken rule is left out", brokenAnswer, []string{"--skip", "answers.retry,load"}, cmdline.ExitDone, []string{" 0 failed, "}, "answers.retry", ""},
		"Only":          {"others are left out", brokenAnswer, []string{"--only", "discovery,*.names"}, cmdline.ExitDone, []string{": 11 passed, 0 failed, 0 warnings, 2 not applicable"}, "", ""},
		"NoneApplies":   {"a check that checked nothing does not pass", goodAnswer, []string{"--only", "infrastructure", "-o", "json"}, cmdline.ExitFailed, []string{`"conforms": false`}, "", "hookgate: nothing was checked: none of the selected checks applies to the extension"},
		"NoneSelected":  {"flags that leave nothing are a mistake", goodAnswer, []string{"--only", "answers", "--skip", "answers"}, cmdline.ExitUsage, nil, "", "--only and --skip select no check"},
		"NoneToWatch":   {"and end --watch", goodAnswer, []string{"--watch", "--skip", "*"}, cmdline.ExitUsage, nil, "", "--only and --skip select no check"},
		"UnknownCheck":  {"an identifier with a mistake is not passed over", goodAnswer, []string{"--skip", "answers.retri"}, cmdline.ExitUsage, nil, "", `--skip: there is no check "answers.retri"`},
		"UnknownFormat": {"a format that others have", goodAnswer, []string{"-o", "yaml"}, cmdline.ExitUsage, nil, "", `--output "yaml": want table, json or junit`},
		"OwnRequest":    {"a request of the user's", goodAnswer, []string{"--request", "beforeclustercreate=testdata/check/request.yaml", "--only", "answers", "--strict"}, cmdline.ExitDone, []string{"0 failed"}, "", ""},
		"NoRequest":     {"a file that is not there", goodAnswer, []string{"--request", "BeforeClusterCreate=none.yaml"}, cmdline.ExitFailed, nil, "", "none.yaml"},
		"NoHook":        {"a request of no hook", goodAnswer, []string{"--request", "BeforeCoffee=none.yaml"}, cmdline.ExitUsage, nil, "", "want HOOK=FILE; the hooks are AfterClusterDelete, AfterClusterUpgrade"},
		"Timeout":       {"all checks together take too long", goodAnswer, []string{"--timeout", "1ns"}, cmdline.ExitFailed, nil, "", "hookgate: check https://127.0.0.1:"},
		"KeyAlone":      {"a key without a certificate", goodAnswer, []string{"--key", "x"}, cmdline.ExitUsage, nil, "", "--cert and --key are needed together"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			url, ca := checked(t, tt.answer)
			code, out, errOut := execute(t, append([]string{"check", url, "--ca", ca}, tt.args...)...)
			if code != tt.code {
				t.Errorf("%s: exit status %d, want %d\n%s%s", tt.reason, code, tt.code, out, errOut)
			}
			for _, text := range tt.out {
				if !strings.Contains(out, text) {
					t.Errorf("%s: want %q in\n%s", tt.reason, text, out)
				}
			}
			if tt.not != "" && strings.Contains(out, tt.not) {
				t.Errorf("%s: there is %q in\n%s", tt.reason, tt.not, out)
			}
			if !strings.Contains(errOut, tt.err) {
				t.Errorf("%s: want %q in\n%s", tt.reason, tt.err, errOut)
			}
		})
	}
}

// TestCheckGone checks that an extension that dies is reported once, not by every later check.
func TestCheckGone(t *testing.T) {
	dead := make(chan struct{})
	url, ca := checkedBy(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-dead:
			default:
				if !strings.HasSuffix(r.URL.Path, "/create") {
					next.ServeHTTP(w, r)
					return
				}
				close(dead)
			}
			panic(http.ErrAbortHandler)
		})
	})
	code, out, _ := execute(t, "check", url, "--ca", ca, "--only", "answers.valid,answers.status,answers.retry")
	const want = "ERROR 2 checks could not be carried out; the first is answers.status: the extension no longer answers\n"
	if code != cmdline.ExitFailed || !strings.Contains(out, want) || strings.Count(out, "ERROR") != 1 || !strings.Contains(out, " 3 failed, ") {
		t.Errorf("exit status %d:\n%s", code, out)
	}
}

func TestCheckUsage(t *testing.T) {
	dir := t.TempDir()
	unknownMember, noObject := filepath.Join(dir, "unknown.yaml"), filepath.Join(dir, "list.yaml")
	for file, text := range map[string]string{
		unknownMember: "machines: {}\ncredentials: {token: s3cr3t}\n", noObject: "machine: [1]\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		args []string
		code int
		err  string
	}{
		"NoURL":     {nil, cmdline.ExitUsage, "want one URL, got 0 arguments"},
		"TwoURLs":   {[]string{"https://a", "https://b"}, cmdline.ExitUsage, "want one URL, got 2 arguments"},
		"BadURL":    {[]string{"ftp://a"}, cmdline.ExitUsage, `not with "ftp"`},
		"NoTLS":     {[]string{"grpc://ext.example:9090"}, cmdline.ExitUsage, "use grpcs://ext.example:9090"},
		"ListOfURL": {[]string{"--list", "https://a"}, cmdline.ExitUsage, "want no URL with --list"},
		"ListJUnit": {[]string{"--list", "-o", "junit"}, cmdline.ExitUsage, "--list prints a table or json"},
		"NoFile":    {[]string{"https://127.0.0.1:1", "--infrastructure", "none.yaml"}, cmdline.ExitFailed, "none.yaml"},
		"Unknown":   {[]string{"https://127.0.0.1:1", "--infrastructure", unknownMember}, cmdline.ExitUsage, `unknown field "machines"`},
		"NoObject":  {[]string{"https://127.0.0.1:1", "--infrastructure", noObject}, cmdline.ExitUsage, "machine: want an object"},
		"LongWait":  {[]string{"https://127.0.0.1:1", "--wait", "11m"}, cmdline.ExitUsage, "--wait: want 0 to 10m0s, got 11m0s"},
		"Waited":    {[]string{"https://127.0.0.1:1", "--wait", "1ms"}, cmdline.ExitFailed, "connection refused\nDoes it run, and is the port right?"},
		"WaitNoTLS": {[]string{"grpc://192.0.2.1:9090", "--wait", "10m"}, cmdline.ExitUsage, "use grpcs://192.0.2.1:9090"},
		"NoCA":      {[]string{"https://127.0.0.1:1", "--ca", "none.crt"}, cmdline.ExitFailed, "read --ca: open none.crt"},
		"Refused":   {[]string{"https://127.0.0.1:1"}, cmdline.ExitFailed, "connection refused\nDoes it run, and is the port right?"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, _, errOut := execute(t, append([]string{"check"}, tt.args...)...); code != tt.code || !strings.Contains(errOut, tt.err) {
				t.Errorf("exit status %d, want %d; want %q in\n%s", code, tt.code, tt.err, errOut)
			}
		})
	}
}

func TestCheckUnknownCA(t *testing.T) {
	url, _ := checked(t, goodAnswer)
	if code, _, errOut := execute(t, "check", url); code != cmdline.ExitFailed || !strings.Contains(errOut, "signed by an unknown authority\nGive the CA that signed it: --ca FILE.") {
		t.Errorf("exit status %d: %s", code, errOut)
	}
}

func TestCheckFormats(t *testing.T) {
	url, ca := checked(t, brokenAnswer)
	_, out, _ := execute(t, "check", url, "--ca", ca, "-o", "json")
	var report struct {
		Conforms bool
		conformance.Report
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if report.Conforms || report.Target != url || report.Protocol != conformance.REST || !cmp.Equal(report.Handlers, []string{"create"}) ||
		len(report.Results) != len(conformance.Checks()) || report.Count(conformance.Must, conformance.Fail) != 1 {
		t.Errorf("got %+v", report)
	}

	_, out, _ = execute(t, "check", url, "--ca", ca, "-o", "junit")
	var suite struct {
		XMLName  xml.Name `xml:"testsuite"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Cases    []struct {
			Class   string `xml:"classname,attr"`
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
				Text    string `xml:",chardata"`
			} `xml:"failure"`
			Skipped *struct{} `xml:"skipped"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal([]byte(out), &suite); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if suite.Tests != len(conformance.Checks()) || suite.Failures != 1 || suite.Skipped != report.Count("", conformance.Skip) || len(suite.Cases) != suite.Tests {
		t.Errorf("got %+v", suite)
	}
	for _, c := range suite.Cases {
		if (c.Name == "answers.retry") != (c.Failure != nil) {
			t.Errorf("%s: failure %v", c.Name, c.Failure)
		}
		if c.Failure != nil && (c.Class != "hookgate.check.answers" || c.Failure.Message != "MUST: retryAfterSeconds of an answer is not negative." || !strings.Contains(c.Failure.Text, "problem: retryAfterSeconds is -5\n")) {
			t.Errorf("got %+v", c)
		}
	}
}

// TestCheckJUnitWarnings checks that a warning is a failure in JUnit only if requested.
func TestCheckJUnitWarnings(t *testing.T) {
	url, ca := checked(t, warningAnswer)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, `<skipped message="warning: A realistic request is answered with Success`},
		{[]string{"--strict"}, `<failure message="SHOULD: A realistic request is answered with Success`},
	} {
		if _, out, _ := execute(t, append([]string{"check", url, "--ca", ca, "-o", "junit", "--only", "answers"}, tt.args...)...); !strings.Contains(out, tt.want) {
			t.Errorf("want %q in %s", tt.want, out)
		}
	}
}

func TestCheckList(t *testing.T) {
	code, out, _ := execute(t, "check", "--list")
	if code != cmdline.ExitDone || strings.Count(out, "\n") != len(conformance.Checks())+1 || !strings.Contains(out, "patches.apply ") {
		t.Errorf("exit status %d:\n%s", code, out)
	}
	_, out, _ = execute(t, "check", "--list", "-o", "json")
	var list struct{ Checks []conformance.Check }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Checks) != len(conformance.Checks()) || list.Checks[0].Rule == "" {
		t.Errorf("got %d checks, %v:\n%s", len(list.Checks), err, out)
	}
}

func execute(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	o := commandtest.Hookgate(t, "", args...)
	return o.Code, o.Out, o.ErrOut
}
