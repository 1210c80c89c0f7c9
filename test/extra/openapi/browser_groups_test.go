// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	dnsv1alpha1 "github.com/hookgate/hookgate/examples/own-hooks/gen/acme/dns/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// buildOwnHooks builds examples/own-hooks, a gateway with a group of hooks of its own, and returns its path.
func buildOwnHooks(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "own-hooks")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./examples/own-hooks")
	cmd.Dir = filepath.Join("..", "..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build examples/own-hooks: %v\n%s", err, out)
	}
	return program
}

// serveDNS adds a handler of EnsureRecord in plain JSON.
func serveDNS(mux *http.ServeMux) {
	const apiVersion = "dns.acme.example/v1alpha1"
	discover := func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": apiVersion, "kind": "DiscoverDNSResponse", "status": "Success", "handlers": []any{map[string]any{
				"name": "ensure", "requestHook": map[string]any{"apiVersion": apiVersion, "hook": "EnsureRecord"},
			}},
		})
	}
	mux.HandleFunc("POST /"+apiVersion+"/discoverdns", discover)
	mux.HandleFunc("POST /"+apiVersion+"/ensurerecord/ensure", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": apiVersion, "kind": "EnsureRecordResponse", "status": "Success", "message": "the record is there",
		})
	})
}

// TestGroupPagesInABrowser opens the pages of the other groups as a reader of the first page would, and tries a hook.
func TestGroupPagesInABrowser(t *testing.T) {
	hooks, err := catalog.With(append(catalog.Infrastructure(), catalog.Source{
		Group: "dns.acme.example", Version: "v1alpha1", FailOnly: true,
		Files: []protoreflect.FileDescriptor{dnsv1alpha1.File_acme_dns_v1alpha1_dns_proto},
	})...)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		program           func(*testing.T) string
		ofOne             bool // Discovery can be asked of one extension
		serve             func(*http.ServeMux)
		group             string
		discovery, called string   // hooks
		offered           []string // handlers of the hook
		listed, answer    string   // in the answers of both
	}{
		"infrastructure": {
			func(t *testing.T) string { return process.Program(t, "HOOKGATE_BIN") }, true, serveInfrastructure, hook.InfrastructureGroup,
			"DiscoverInfrastructure", "ReconcileMachine", []string{"reconcilemachine.acme"}, `"reconcilemachinepool--acme"`, `"status": "Success"`,
		},
		"own hooks": {
			buildOwnHooks, false, serveDNS, "dns.acme.example",
			"DiscoverDNS", "EnsureRecord", []string{"ensure.acme"}, `"ensure--acme"`, "the record is there",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pair := certificates.New(t)
			g := startProgram(t, tt.program(t), pair, map[string]string{"acme": startExtension(t, pair, tt.serve)})
			b := startBrowser(t, pair)
			row := func(h string) chromedp.CSS { return chromedp.CSS(`[id$="-v1alpha1` + h + `"]`) }
			b.run(t, "open the first page", chromedp.Navigate(g.url+"/openapi/"), chromedp.WaitVisible(row("BeforeClusterCreate")))
			b.click(t, "follow the link", `nav a[href$="/`+tt.group+`/"]`)
			b.run(t, "wait for the group's page", chromedp.WaitVisible(row(tt.called)))
			operations := value(t, b, "list the operations", chromedp.Evaluate[[]string](
				`Array.from(document.querySelectorAll('.opblock-summary-path')).map(e => e.getAttribute('data-path'))`))
			b.screenshot(t, "operations.png")
			var want []string
			for _, h := range hooks.Hooks() {
				switch {
				case h.Group != tt.group:
				case h.Singleton() && !tt.ofOne:
					want = append(want, h.Path(""))
				default:
					want = append(want, h.Path("{name}"))
				}
			}
			if got := slices.Sorted(slices.Values(operations)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				t.Errorf("the page lists %q, want %q", got, want)
			}
			if last := operations[len(operations)-1]; !strings.Contains(last, strings.ToLower(tt.discovery)) {
				t.Errorf("the page ends with %s, want Discovery last", last)
			}

			b.try(t, "v1alpha1"+tt.discovery, "", "200", tt.listed)
			b.try(t, "v1alpha1"+tt.called, "", "200", tt.answer)
			b.screenshot(t, "tried.png")
			offered := poll[[]string](t, b, "handlers to choose from", `(() => {
				const input = document.querySelector('[id$="-v1alpha1`+tt.called+`"] tr[data-param-name="name"] input');
				return input && input.list && Array.from(input.list.options).map(o => o.value);
			})()`)
			if !slices.Equal(offered, tt.offered) {
				t.Errorf("the page offers the handlers %q, want %q", offered, tt.offered)
			}
			requests, problems := b.seen()
			if len(problems) > 0 {
				t.Errorf("the console has errors: %q", problems)
			}
			for _, request := range requests {
				if u, err := url.Parse(request); err != nil || u.Scheme != "data" && u.Scheme+"://"+u.Host != g.url {
					t.Errorf("the page asked another host: %s", request)
				}
			}
		})
	}
}
