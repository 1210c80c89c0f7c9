// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// world is what the actions of a test change.
type world struct {
	mu      sync.Mutex
	differs string // what an action shows
	done    []string
	err     error
	block   chan struct{} // holds actions, if it is not nil
}

func (o *world) did() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.done, ", ")
}

func (o *world) differ(s string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.differs, o.err = s, err
}

// approve asks, as commands do.
func (o *world) approve(_ context.Context, v Values, in io.Reader, out io.Writer) error {
	if o.block != nil {
		<-o.block
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	_, _ = fmt.Fprintf(out, "%s: %s\nApprove these? [y/N] ", v["cluster"], o.differs)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil || line != "y\n" {
		return errors.New("not confirmed")
	}
	o.done = append(o.done, "approved "+v["cluster"])
	_, _ = fmt.Fprintln(out, "Approved.")
	return nil
}

func (o *world) actions() []Action {
	return []Action{
		{
			Name: "approve", Title: "Approve", Asks: true, Run: o.approve,
			Fields: []Field{{Name: "cluster", Label: "Cluster", Required: true}},
		},
		{
			Name: "abort", Title: "Abort", Does: "No more Clusters move.", Fields: []Field{{Name: "rollout", Label: "Rollout"}},
			Run: func(_ context.Context, v Values, _ io.Reader, _ io.Writer) error {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.done = append(o.done, "aborted "+v["rollout"])
				return o.err
			},
		},
		{
			Name: "record", Title: "Record", Streams: true, Longest: time.Minute,
			Fields: []Field{{Name: "for", Label: "For", Edited: true, Required: true, Options: []string{"1m"}}},
			Run: func(ctx context.Context, _ Values, _ io.Reader, out io.Writer) error {
				_, _ = fmt.Fprintln(out, "<recording>")
				select {
				case <-o.block:
					return nil
				case <-ctx.Done():
					o.mu.Lock()
					defer o.mu.Unlock()
					o.done = append(o.done, "ended early")
					return ctx.Err()
				}
			},
		},
	}
}

// fixture is a server, and a browser without a code.
type fixture struct {
	*Server
	*world
	base string
	http *http.Client
	log  *bytes.Buffer
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{world: &world{differs: "a → b"}, log: &bytes.Buffer{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.ServeHTTP(w, r) }))
	f.base = "http://" + server.Listener.Addr().String()
	f.Server = New(Config{
		Address: server.Listener.Addr().String(), Page: "http://127.0.0.1:1/", Target: "gateway g", Actions: f.actions(), Log: f.log,
	})
	server.Start()
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	f.http = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return f
}

// answered is what a browser gets besides the text.
type answered struct {
	StatusCode int
	Header     http.Header
	Cookies    []*http.Cookie
}

// ask sends a request as a browser does, with more headers in pairs, and returns the answer.
func (f *fixture) ask(t *testing.T, method, path string, form url.Values, headers ...string) (answered, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, f.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Sec-Fetch-Mode", "navigate")
	request.Header.Set("Sec-Fetch-Dest", "document")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Origin", f.base)
	}
	for i := 0; i < len(headers); i += 2 {
		if request.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			request.Host = headers[i+1]
		}
	}
	response, err := f.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{response.StatusCode, response.Header, response.Cookies()}, html.UnescapeString(string(body))
}

// unlocked is a fixture whose browser has shown the code.
func unlocked(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	if response, _ := f.ask(t, http.MethodGet, strings.TrimPrefix(f.Link(), f.base), nil, "Sec-Fetch-Site", "none"); response.StatusCode != http.StatusSeeOther ||
		response.Header.Get("Location") != "http://127.0.0.1:1/" {
		t.Fatalf("the link: %d %s", response.StatusCode, response.Header)
	}
	return f
}

var field = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// form returns the form of a page.
func form(body string) url.Values {
	v := url.Values{}
	for _, match := range field.FindAllStringSubmatch(body, -1) {
		v.Set(match[1], match[2])
	}
	return v
}

// What is confirmed is what was shown: nothing is done without a form of this process, or if it has changed since.
func TestConfirmed(t *testing.T) {
	f := unlocked(t)
	response, body := f.ask(t, http.MethodGet, "/approve?cluster=team-a/prod", nil, "Sec-Fetch-Site", "same-site")
	for _, want := range []string{"team-a/prod: a → b\n", "<strong>Approve these?</strong>", ">Yes: Approve</button>", "gateway g"} {
		if response.StatusCode != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d, lacks %q: %s", response.StatusCode, want, body)
		}
	}
	shown := form(body)
	for name, tt := range map[string]struct {
		change func(v url.Values)
		code   int
	}{
		"NoToken":      {func(v url.Values) { v.Del(tokenField) }, http.StatusConflict},
		"OtherToken":   {func(v url.Values) { v.Set(tokenField, "0") }, http.StatusConflict},
		"OtherCluster": {func(v url.Values) { v.Set("cluster", "team-a/other") }, http.StatusConflict},
		"OtherField":   {func(v url.Values) { v.Set("force", "true") }, http.StatusBadRequest},
		"NoCluster":    {func(v url.Values) { v.Del("cluster") }, http.StatusBadRequest},
		"TwoClusters":  {func(v url.Values) { v.Add("cluster", "x") }, http.StatusBadRequest},
		"Long":         {func(v url.Values) { v.Set("cluster", strings.Repeat("x", limits.QuotedBytes+1)) }, http.StatusBadRequest},
	} {
		v := url.Values{}
		for key, values := range shown {
			v[key] = append([]string{}, values...)
		}
		tt.change(v)
		if response, _ := f.ask(t, http.MethodPost, "/approve", v); response.StatusCode != tt.code || f.did() != "" {
			t.Errorf("%s: %d, want %d; done: %s", name, response.StatusCode, tt.code, f.did())
		}
	}
	f.differ("a → c", nil)
	response, body = f.ask(t, http.MethodPost, "/approve", shown)
	if response.StatusCode != http.StatusConflict || !strings.Contains(body, "Nothing was done") || !strings.Contains(body, "a → c") || f.did() != "" {
		t.Errorf("changed meanwhile: %d %s", response.StatusCode, body)
	}
	response, body = f.ask(t, http.MethodPost, "/approve", form(body))
	if response.StatusCode != http.StatusOK || !strings.Contains(body, "Approved.\n") || f.did() != "approved team-a/prod" {
		t.Errorf("%d %s; done: %s", response.StatusCode, body, f.did())
	}
	if !strings.Contains(f.log.String(), `msg=action name=approve arguments="cluster=\"team-a/prod\"" result=done`) || strings.Count(f.log.String(), "\n") != 1 {
		t.Errorf("the log: %s", f.log)
	}
}

// The answer of the API server is shown, with its code.
func TestForbidden(t *testing.T) {
	f := unlocked(t)
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "extensionrollouts"}, "acme", errors.New("no right\x1b[2J"))
	f.differ("", fmt.Errorf("get ExtensionRollout: %w", refused))
	response, body := f.ask(t, http.MethodGet, "/approve?cluster=c", nil)
	if response.StatusCode != http.StatusForbidden || !strings.Contains(body, `"acme" is forbidden: no right\x1b[2J`) || strings.Contains(body, "<form") {
		t.Errorf("%d %s", response.StatusCode, body)
	}
	_, body = f.ask(t, http.MethodGet, "/abort?rollout=acme", nil)
	if response, body = f.ask(t, http.MethodPost, "/abort", form(body)); response.StatusCode != http.StatusForbidden || !strings.Contains(body, "is forbidden") {
		t.Errorf("%d %s", response.StatusCode, body)
	}
	if !strings.Contains(f.log.String(), "is forbidden") {
		t.Errorf("the log: %s", f.log)
	}
}

// An action that asks nothing needs the form all the same.
func TestAbortNeedsItsForm(t *testing.T) {
	f := unlocked(t)
	_, body := f.ask(t, http.MethodGet, "/abort?rollout=acme", nil)
	v := form(body)
	v.Set("rollout", "other")
	if response, _ := f.ask(t, http.MethodPost, "/abort", v); response.StatusCode != http.StatusForbidden || f.did() != "" {
		t.Errorf("%d; done: %s", response.StatusCode, f.did())
	}
	if response, _ := f.ask(t, http.MethodPost, "/abort", form(body)); response.StatusCode != http.StatusOK || f.did() != "aborted acme" {
		t.Errorf("%d; done: %s", response.StatusCode, f.did())
	}
}

// Only the person at the terminal has the code. The page that asks for it leads on.
func TestCode(t *testing.T) {
	f := newFixture(t)
	response, body := f.ask(t, http.MethodGet, "/approve?cluster=c", nil, "Sec-Fetch-Site", "same-site")
	if response.StatusCode != http.StatusUnauthorized || strings.Contains(body, "a → b") {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
	v := form(body)
	if response, _ := f.ask(t, http.MethodPost, "/approve", url.Values{"cluster": {"c"}, tokenField: {"0"}}); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("an action: %d", response.StatusCode)
	}
	v.Set("code", "wrong")
	if response, body = f.ask(t, http.MethodPost, "/", v); response.StatusCode != http.StatusUnauthorized || len(response.Cookies) != 0 {
		t.Errorf("a wrong code: %d %s", response.StatusCode, body)
	}
	v.Set("code", " "+strings.ToUpper(f.Code()))
	if response, _ = f.ask(t, http.MethodPost, "/", v); response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != "/approve?cluster=c" {
		t.Fatalf("the code: %d %s", response.StatusCode, response.Header)
	}
	if c := response.Cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie is %+v", c)
	}
	if response, _ = f.ask(t, http.MethodGet, "/approve?cluster=c", nil); response.StatusCode != http.StatusOK {
		t.Errorf("then: %d", response.StatusCode)
	}
	for _, next := range []string{"https://evil.example/", "//evil.example", `/\evil.example`, "javascript:x"} {
		v.Set("next", next)
		response, _ = f.ask(t, http.MethodPost, "/", v)
		if at := response.Header.Get("Location"); strings.HasPrefix(at, "https:") || strings.HasPrefix(at, "//") || strings.HasPrefix(at, `/\`) || strings.HasPrefix(at, "javascript") {
			t.Errorf("%s leads to %s", next, at)
		}
	}
}

// Pages of other sites, and the gateway's own at another port, cannot send forms, nor read what is shown.
func TestOtherSites(t *testing.T) {
	f := unlocked(t)
	_, body := f.ask(t, http.MethodGet, "/approve?cluster=c", nil)
	confirmed := form(body)
	for name, tt := range map[string]struct {
		method  string
		code    int
		headers []string
	}{
		"CrossSiteForm":  {http.MethodPost, http.StatusForbidden, []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}},
		"GatewaysForm":   {http.MethodPost, http.StatusForbidden, []string{"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"}},
		"OlderBrowser":   {http.MethodPost, http.StatusForbidden, []string{"Sec-Fetch-Site", "", "Origin", "https://evil.example"}},
		"Rebound":        {http.MethodPost, http.StatusMisdirectedRequest, []string{"Host", "rebound.example"}},
		"ReboundLink":    {http.MethodGet, http.StatusMisdirectedRequest, []string{"Host", "localhost"}},
		"CrossSiteLink":  {http.MethodGet, http.StatusForbidden, []string{"Sec-Fetch-Site", "cross-site"}},
		"GatewaysScript": {http.MethodGet, http.StatusForbidden, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}},
		"GatewaysFrame":  {http.MethodGet, http.StatusForbidden, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Dest", "iframe"}},
		"ServiceWorker":  {http.MethodGet, http.StatusForbidden, []string{"Service-Worker", "script"}},
		"Put":            {http.MethodPut, http.StatusMethodNotAllowed, nil},
		"GatewaysLink":   {http.MethodGet, http.StatusOK, []string{"Sec-Fetch-Site", "same-site"}},
	} {
		response, body := f.ask(t, tt.method, "/approve?cluster=c", confirmed, tt.headers...)
		if response.StatusCode != tt.code || f.did() != "" {
			t.Errorf("%s: %d, want %d; done: %s\n%s", name, response.StatusCode, tt.code, f.did(), body)
		}
		for _, name := range []string{"Access-Control-Allow-Origin", "Set-Cookie"} {
			if got := response.Header.Get(name); got != "" {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	response, _ := f.ask(t, http.MethodPost, "/approve", confirmed)
	if policy := response.Header.Get("Content-Security-Policy"); response.StatusCode != http.StatusOK || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "script") {
		t.Errorf("its own form: %d, %s", response.StatusCode, policy)
	}
}

// So many actions run at a time, and a recording ends with its page.
func TestBounds(t *testing.T) {
	f := unlocked(t)
	f.block = make(chan struct{})
	_, body := f.ask(t, http.MethodGet, "/record", nil)
	v := form(body)
	v.Set("for", "2m")
	if response, _ := f.ask(t, http.MethodPost, "/record", v); response.StatusCode != http.StatusBadRequest {
		t.Errorf("another time: %d", response.StatusCode)
	}
	v.Set("for", "1m")
	var pages []context.CancelFunc
	for range limits.DashboardActions {
		ctx, cancel := context.WithCancel(t.Context())
		pages = append(pages, cancel)
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, f.base+"/record", strings.NewReader(v.Encode()))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := f.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		lines := bufio.NewReader(response.Body)
		for line := ""; !strings.Contains(line, "&lt;recording&gt;"); {
			if line, err = lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
	}
	response, _ := f.ask(t, http.MethodGet, "/approve?cluster=c", nil)
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %d", response.StatusCode)
	}
	for _, closePage := range pages {
		closePage()
	}
	for strings.Count(f.did(), "ended early") < len(pages) {
		time.Sleep(time.Millisecond) // until t's deadline
	}
	large := url.Values{"for": {strings.Repeat("x", 4*limits.DashboardFormBytes)}}
	for response.StatusCode = 0; response.StatusCode != http.StatusBadRequest; {
		response, _ = f.ask(t, http.MethodPost, "/record", large) // until the places are free, or t's deadline
	}
}

// What is printed is cut, and all of it is confirmed.
func TestLongOutput(t *testing.T) {
	f := unlocked(t)
	f.differ(strings.Repeat("x", limits.DashboardOutputBytes)+"1", nil)
	_, body := f.ask(t, http.MethodGet, "/approve?cluster=c", nil)
	f.differ(strings.Repeat("x", limits.DashboardOutputBytes)+"2", nil)
	if response, _ := f.ask(t, http.MethodPost, "/approve", form(body)); response.StatusCode != http.StatusConflict || f.did() != "" {
		t.Errorf("%d; done: %s", response.StatusCode, f.did())
	}
	if len(body) > 2*limits.DashboardOutputBytes {
		t.Errorf("%d bytes", len(body))
	}
}
