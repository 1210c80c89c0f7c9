// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// refusals are the answers that Cluster API takes and the gateway refuses: the rows of the table of
// docs/existing-extension.md, each with an example.
var refusals = []struct {
	what, text, why string
	body            string
	serve           http.HandlerFunc // in place of the body
	patches         bool             // the answer is one of GeneratePatches
}{
	{
		what: "another `kind`", text: "answer: kind: want BeforeClusterCreateResponse, got BeforeClusterDeleteResponse",
		why:  "members that an answer for another hook lacks would count as consent",
		body: `{"kind":"BeforeClusterDeleteResponse","status":"Success"}`,
	},
	{
		what: "another `apiVersion`", text: "answer: apiVersion: want hooks.runtime.cluster.x-k8s.io/v1alpha1, got hooks.runtime.cluster.x-k8s.io/v1",
		why:  "its members may mean something else",
		body: `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1","status":"Success"}`,
	},
	{
		what: "text after the JSON", text: "answer: invalid JSON at byte 21: unexpected '{', want nothing after the value",
		why:  "Cluster API reads only the first of two answers",
		body: `{"status":"Success"} {"status":"Failure"}`,
	},
	{
		what: "bytes that are not UTF-8", text: "answer: invalid JSON at byte 32: not UTF-8",
		why:  "Cluster API replaces them; gRPC, protobuf and the API server refuse them",
		body: `{"status":"Success","message":"a` + "\xff" + `"}`,
	},
	{
		what: "half of a surrogate pair", text: "answer: invalid JSON at byte 30: string with half of a surrogate pair",
		why:  "the same",
		body: `{"status":"Success","message":"\ud83d"}`,
	},
	{
		what: "a member twice", text: "answer: retryAfterSeconds: occurs twice in one object",
		why:  "Cluster API takes the last value, other programs the first",
		body: `{"status":"Success","retryAfterSeconds":60,"retryAfterSeconds":0}`,
	},
	{
		what: "two members that differ only in case", text: "answer: retryAfterSeconds: occurs twice in one object, in upper and lower case",
		why:  "Cluster API treats both as one member",
		body: `{"status":"Success","retryAfterSeconds":60,"RetryAfterSeconds":0}`,
	},
	{
		what: "`null` in a list of objects", text: "answer: items[0]: want an object, got null",
		why:  "Cluster API treats it as an empty object",
		body: `{"status":"Success","items":[null]}`, patches: true,
	},
	{
		what: "a negative `retryAfterSeconds`", text: "answer: retryAfterSeconds: -60 is negative",
		why:  "Cluster API holds the Cluster for an unknown time",
		body: `{"status":"Success","retryAfterSeconds":-60}`,
	},
	{
		what: "a redirect", text: "answered 307 Temporary Redirect: redirects are not followed",
		why: "only the registered URL was checked, and requests may contain secrets",
		serve: func(w http.ResponseWriter, req *http.Request) {
			if strings.HasSuffix(req.URL.Path, "/there") {
				answer(`{"status":"Success"}`)(w, req)
				return
			}
			http.Redirect(w, req, "/there", http.StatusTemporaryRedirect)
		},
	},
	{
		what: "a `Content-Encoding` other than gzip", text: `answer is encoded with Content-Encoding "br", which was not requested`,
		why:   "Cluster API ignores it",
		serve: headed("Content-Encoding", "br", []byte(`{"status":"Success"}`)),
	},
	{
		what: "more than 20 MiB", text: "answer is larger than 20971520 bytes",
		why:  "one answer must not take the memory of other answers: [limits](limits.md)",
		body: `{"status":"Success"}` + strings.Repeat(" ", limits.BodyBytes),
	},
	{
		what: "more than 100,000 elements", text: "answer: has more than 100000 list elements, map entries and unknown members in total",
		why:  "the same",
		body: `{"status":"Success","items":[` + strings.Repeat(`{},`, limits.Elements) + `{}]}`, patches: true,
	},
	{
		what: "objects nested deeper than 1,000", text: "answer: invalid JSON at byte 1025: nested deeper than 1000",
		why:  "saves memory for other answers; Cluster API allows 10,000 levels",
		body: `{"status":"Success","new":` + strings.Repeat(`[`, 1001) + strings.Repeat(`]`, 1001) + `}`,
	},
	{
		what: "a header of more than 64 KiB", text: "header of the answer is larger than 65536 bytes",
		why:   "saves memory",
		serve: headed("X-Large", strings.Repeat("x", 100<<10), []byte(`{"status":"Success"}`)),
	},
	{
		what: "a header of more than 256 lines", text: "header of the answer has more than 256 lines",
		why: "the same",
		serve: func(w http.ResponseWriter, req *http.Request) {
			for i := range limits.AnswerHeaderLines {
				w.Header().Set(fmt.Sprintf("X-%d", i), "x")
			}
			answer(`{"status":"Success"}`)(w, req)
		},
	},
}

// takenByClusterAPI does what Cluster API's client of extensions does with an answer.
func takenByClusterAPI(t *testing.T, s *server, into runtimehooksv1.ResponseObject) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, bytes.NewBufferString("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status code %d", resp.StatusCode)
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return err
	}
	if into.GetStatus() != runtimehooksv1.ResponseStatusSuccess {
		return fmt.Errorf("status %q", into.GetStatus())
	}
	return nil
}

// Each answer of the table is taken by Cluster API and refused by the gateway, with the text that the page has.
func TestAnswersThatClusterAPITakes(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "existing-extension.md"))
	if err != nil {
		t.Fatal(err)
	}
	a := newAuthority(t)
	for _, r := range refusals {
		t.Run(r.what, func(t *testing.T) {
			serve := r.serve
			if serve == nil {
				serve = answer(r.body)
			}
			s := newServer(t, a, serve, nil)
			var into runtimehooksv1.ResponseObject = &runtimehooksv1.BeforeClusterCreateResponse{}
			c := newCall(s.cc)
			if r.patches {
				into = &runtimehooksv1.GeneratePatchesResponse{}
				c.Hook, _ = catalog.New().ByName("GeneratePatches")
				c.Request = &hooksv1alpha1.GeneratePatchesRequest{}
			}
			if err := takenByClusterAPI(t, s, into); err != nil {
				t.Errorf("Cluster API refuses it, too: %v", err)
			}
			result, err := newREST(t, Config{}).Call(t.Context(), c)
			wantError(t, r.why, result.Response, err, hook.BadResponse, `handler "v.acme": call extension: `+r.text)
			if row := fmt.Sprintf("| %s | `%s` | %s |\n", r.what, r.text, r.why); !strings.Contains(string(page), row) {
				t.Errorf("docs/existing-extension.md lacks the row\n%s", row)
			}
		})
	}
}
