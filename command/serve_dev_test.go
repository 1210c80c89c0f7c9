// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/command/internal/commandtest"
	dnsv1alpha1 "github.com/hookgate/hookgate/examples/own-hooks/gen/acme/dns/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
)

// TestServeDev runs the commands that serve --dev prints, as they are, with a certificate that it has made. The
// next start uses the certificate again, and nothing is left in the directory for temporary files.
func TestServeDev(t *testing.T) {
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{
		"Discovery": {Body: commandtest.Reply("Discovery", `"status":"Success","handlers":[{"name":"gate","timeoutSeconds":10,"failurePolicy":"Fail",`+
			`"requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"BeforeClusterCreate"}}]`)},
		"BeforeClusterCreate": {Body: commandtest.Reply("BeforeClusterCreate", `"status":"Success","retryAfterSeconds":7,"message":"soon"`)},
	})
	cache, temp := t.TempDir(), t.TempDir()
	start := func() (*process.Gateway, string) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "serve", "--dev", "--extension", "grpc://"+f.GRPC,
			"--http-address", "127.0.0.1:0", "--grpc-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0")
		cmd.Env = append(os.Environ(), commandtest.AsProgram+"=1", "XDG_CACHE_HOME="+cache, "TMPDIR="+temp)
		g := process.RunGateway(t, cmd)
		g.WaitReady(t)
		return g, g.Expect(t, `(?m)^  \S+ call .* --ca (\S+) --server https`)[1]
	}
	g, ca := start()
	if want := filepath.Join(cache, "hookgate", "dev", devcert.CAFile); ca != want {
		t.Errorf("the CA is %s, want %s", ca, want)
	}
	key, err := os.Stat(filepath.Join(filepath.Dir(ca), devcert.KeyFile))
	if err != nil || key.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", key.Mode(), err)
	}
	made, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(g.Output(), "no memory limit") {
		t.Errorf("asks for a limit on a machine for development:\n%s", g.Output())
	}
	printed := regexp.MustCompile(`(?m)^  .*$`).FindAllString(g.Output(), -1)
	if len(printed) != 3 {
		t.Fatalf("printed %q", printed)
	}
	for i, want := range []string{"gate.extension", "MESSAGE       soon", `"message":"soon"`} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", printed[i])
		cmd.Env = append(os.Environ(), commandtest.AsProgram+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want %q in\n%s", printed[i], err, want, out)
		}
	}
	g.EndWell(t)
	if left, err := os.ReadDir(temp); len(left) > 0 || err != nil {
		t.Errorf("%s has %v, %v", temp, left, err)
	}
	_, ca = start()
	if again, err := os.ReadFile(ca); err != nil || string(again) != string(made) {
		t.Errorf("the next start has made another certificate, %v", err)
	}
}

// Without a handler, serve --dev offers no call, and offers one as soon as there is a handler.
func TestServeDevOffersACallLater(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "serve", "--dev", "--extension-configs", dir, "--cert-dir", t.TempDir(),
		"--http-address", "127.0.0.1:0", "--grpc-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), commandtest.AsProgram+"=1")
	g := process.RunGateway(t, cmd)
	g.Expect(t, `No handler is known yet`)
	if strings.Contains(g.Output(), "--example") {
		t.Errorf("offers a call that no handler answers:\n%s", g.Output())
	}
	rule := `{"apiVersion":"hookgate.dev/v1alpha1","kind":"HookRule","metadata":{"name":"keep"},"spec":{"hook":"BeforeClusterDelete","hold":[{"if":"true","message":"'no'"}]}}`
	if err := os.WriteFile(filepath.Join(dir, "rule.json"), []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
	g.Expect(t, `There is a handler now:\n\n  \S+ call BeforeClusterDelete --example \| \S+ call BeforeClusterDelete -f - --ca .*\n`+
		`  \S+ call BeforeClusterDelete --example -o json \| curl --cacert .*/beforeclusterdelete .* -d @-\n`)
	g.EndWell(t)
}

// TestDevCalls checks that the calls that are offered name a handler where a hook takes one, and have no example for a
// hook of the program's own.
func TestDevCalls(t *testing.T) {
	r := registry.New()
	hooks, err := catalog.With(catalog.Source{
		Group: "dns.acme.example", Version: "v1alpha1", Files: []protoreflect.FileDescriptor{dnsv1alpha1.File_acme_dns_v1alpha1_dns_proto},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := newDevHints(&serveOptions{certDir: "c", dev: devOptions{program: "bin/hookgate"}}, io.Discard, hooks, r)
	address := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9443}
	for _, step := range []struct{ group, hook, want string }{
		{"", "", ""},
		{"dns.acme.example", "EnsureRecord", "  # with your request in the file request.json:\n" +
			"  bin/hookgate call EnsureRecord -f request.json --handler h.acme --ca c/dev-ca.crt\n" +
			"  curl --cacert c/dev-ca.crt https://127.0.0.1:9443/dns.acme.example/v1alpha1/ensurerecord/h.acme -H 'Content-Type: application/json' -d @request.json\n"},
		{hook.Group, "GeneratePatches", "  bin/hookgate call GeneratePatches --example | bin/hookgate call GeneratePatches -f - --handler h.acme --ca c/dev-ca.crt\n" +
			"  bin/hookgate call GeneratePatches --example -o json | curl --cacert c/dev-ca.crt https://127.0.0.1:9443/" +
			"hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/h.acme -H 'Content-Type: application/json' -d @-\n"},
		{hook.Group, "AfterClusterUpgrade", "  bin/hookgate call AfterClusterUpgrade --example | bin/hookgate call AfterClusterUpgrade -f - --ca c/dev-ca.crt\n" +
			"  bin/hookgate call AfterClusterUpgrade --example -o json | curl --cacert c/dev-ca.crt https://127.0.0.1:9443/" +
			"hooks.runtime.cluster.x-k8s.io/v1alpha1/afterclusterupgrade -H 'Content-Type: application/json' -d @-\n"},
	} {
		if step.hook != "" {
			h := registry.Handler{Name: "h", Hook: hook.GroupVersionHook{Group: step.group, Version: hook.Version, Hook: step.hook}, Timeout: time.Second, FailurePolicy: hook.Fail}
			err := r.Apply(registry.Registration{Name: "acme", ClientConfig: registry.ClientConfig{URL: "https://127.0.0.1:1"}, Handlers: []registry.Handler{h}})
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := d.calls(address); got != step.want {
			t.Errorf("%s: got %q, want %q", step.hook, got, step.want)
		}
	}
}

// Several extensions have the names that the flags give them, and one with TLS is trusted by the CA of the directory.
func TestServeDevExtensions(t *testing.T) {
	dir := t.TempDir()
	o := serveOptions{certDir: dir, dev: devOptions{
		enabled: true, extensions: []string{"unix:///run/a.sock", "grpcs://127.0.0.1:1", "acme=https://127.0.0.1:2/a=b"},
	}}
	remove, err := o.openDev()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range []string{"extension", "extension-2", "acme"} {
		data, err := os.ReadFile(filepath.Join(o.extensionConfigs, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var config struct {
			Spec struct {
				ClientConfig struct {
					URL      string
					CABundle []byte
				}
			}
		}
		if err := json.Unmarshal(data, &config); err != nil {
			t.Fatal(err)
		}
		got[name] = config.Spec.ClientConfig.URL + " " + strings.Split(string(config.Spec.ClientConfig.CABundle), "\n")[0]
	}
	const ca = "-----BEGIN CERTIFICATE-----"
	want := map[string]string{
		"extension": "unix:///run/a.sock ", "extension-2": "grpcs://127.0.0.1:1 " + ca, "acme": "https://127.0.0.1:2/a=b " + ca,
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s is %q, want %q", name, got[name], want[name])
		}
	}
	remove()
	if _, err := os.Stat(o.extensionConfigs); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func TestServeDevRefuses(t *testing.T) {
	configs, certs := commandtest.Serving(t)
	if err := os.Remove(filepath.Join(certs, devcert.CAFile)); err != nil { // as with certificates of others
		t.Fatal(err)
	}
	dev := []string{"--dev", "--extension", "grpc://127.0.0.1:1", "--cert-dir", t.TempDir()}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"ExtensionAlone":    {[]string{"--extension", "grpc://127.0.0.1:1"}, "--extension is for development, and needs --dev"},
		"NoExtension":       {[]string{"--dev"}, "--dev needs an extension: give --extension URL"},
		"Cluster":           {append(dev, "--kubeconfig", "x"), "--dev and --kubeconfig: a gateway for development has no cluster; give only one of these flags"},
		"Directory":         {append(dev, "--extension-configs", configs), "--extension takes the place of --extension-configs and --sidecar; give only one of these flags"},
		"Sidecar":           {append(dev, "--sidecar", "grpc://127.0.0.1:1"), "--extension takes the place of --extension-configs and --sidecar; give only one of these flags"},
		"Everywhere":        {append(dev, "--http-address", ":9443"), "--dev and --http-address :9443: a gateway for development listens on loopback only"},
		"GRPC":              {append(dev, "--grpc-address", "0.0.0.0:9090"), "--dev and --grpc-address 0.0.0.0:9090: "},
		"Diagnostics":       {append(dev, "--diagnostics-address", "192.0.2.1:1"), "--dev and --diagnostics-address 192.0.2.1:1: "},
		"OpenDiagnostics":   {append(dev, "--insecure-diagnostics"), "--dev and --insecure-diagnostics: "},
		"Webhooks":          {append(dev, "--webhook-port", "9444"), "--webhook-port"},
		"Jobs":              {append(dev, "--hook-jobs-namespace", "jobs"), "--hook-jobs-namespace: this gateway has no cluster"},
		"State":             {append(dev, "--state-dir", configs), "--state-dir is for --extension-configs"},
		"NoName":            {append(dev, "--extension", "Acme=grpc://127.0.0.1:1"), `--extension "Acme": the name `},
		"OneName":           {append(dev, "--extension", "extension=grpc://127.0.0.1:1"), "--extension: two extensions have the name extension"},
		"NoURL":             {append(dev, "--extension", "127.0.0.1:1"), "--extension: the URL must begin with https://, grpcs://, grpc://, unix://"},
		"Far":               {append(dev, "--extension", "grpc://acme.example:1"), "--extension: the URL must be on loopback"},
		"OtherCertificates": {slices.Concat(dev[:3], []string{"--cert-dir", certs}), "that was not made for development, so the files were not changed"},
		// No one can make a directory there, not even root.
		"NotWritable": {slices.Concat(dev[:3], []string{"--cert-dir", "/sys/hookgate"}), "with --cert-dir, name a writable directory"},
	} {
		got := commandtest.ServeBriefly(t, nil, tt.args...)
		if want := map[bool]int{true: cmdline.ExitFailed, false: cmdline.ExitUsage}[name == "OtherCertificates" || name == "NotWritable"]; got.Code != want || !strings.Contains(got.ErrOut, tt.want) || got.Out != "" {
			t.Errorf("%s: exit status %d, want %d and %q:\n%s%s", name, got.Code, want, tt.want, got.ErrOut, got.Out)
		}
	}
}

// Words that a shell would take apart are quoted.
func TestShellWord(t *testing.T) {
	for _, word := range []string{"/home/a b/it's $HOME", "/run/x-1.sock", "a\nb", "ä"} {
		out, err := exec.CommandContext(context.Background(), "sh", "-c", "printf %s "+cmdline.ShellWord(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%s is %q to a shell, want %q: %v", cmdline.ShellWord(word), out, word, err)
		}
	}
}
