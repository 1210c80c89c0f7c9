// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// hookPath is where a gateway and every extension answer BeforeClusterCreate.
const hookPath = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate"

// tour is one run of the quickstart. It belongs to one goroutine.
type tour struct {
	options
	out          io.Writer
	files        files
	extensionURL string
	https        string // URLs of the gateway's fronts
	grpcs        string
	diags        string
	step         int

	running []*process // in the order of their start
}

func newTour(o options, out io.Writer) *tour { return &tour{options: o, out: out} }

// run starts everything, makes the calls, and stops everything at the end. An interrupt is not an error.
func (t *tour) run(ctx context.Context) error {
	t.printf("Hookgate quickstart. Ctrl-C ends it.\n")
	err := t.session(ctx)
	if ctx.Err() != nil {
		t.printf("\nStopping: calls in flight may finish.\n")
		err = nil // whatever the interrupt broke
	}
	for _, p := range slices.Backward(t.running) { // the gateway before what it calls
		err = errors.Join(err, p.stop())
	}
	return err
}

// session starts everything and makes the calls, then waits for an interrupt.
func (t *tour) session(ctx context.Context) error {
	t.heading("Starting")
	var err error
	if t.files, err = writeCertificates(t.dir); err != nil {
		return err
	}
	t.printf("certificates   %s (for development, made just now)\n", t.files.certDir)

	extension, err := t.start("the extension", t.extension, "rest-extension.log",
		"--address", t.extAddr, "--cert-dir", t.files.certDir)
	if err != nil {
		return err
	}
	addresses, err := extension.addresses(ctx)
	if err != nil {
		return err
	}
	manifest, err := t.files.writeExtensionConfig(addresses["https"])
	if err != nil {
		return err
	}
	t.extensionURL = "https://" + addresses["https"]
	t.printf("extension      https://%s, from examples/rest-extension: a server of HTTPS and JSON\n", addresses["https"])
	t.printf("registration   %s, an ExtensionConfig as Cluster API has it\n", manifest)

	gateway, err := t.start("the gateway", t.hookgate, "hookgate.log", "serve",
		"--extension-configs", t.files.configDir, "--cert-dir", t.files.certDir,
		"--http-address", t.http, "--grpc-address", t.grpc, "--diagnostics-address", t.health)
	if err != nil {
		return err
	}
	if addresses, err = gateway.addresses(ctx); err != nil {
		return err
	}
	t.https, t.grpcs = "https://"+addresses["https"], "grpcs://"+addresses["grpc"]
	t.diags = "http://" + addresses["diagnostics"]
	t.printf("gateway        %s and %s; its log is %s\n", t.https, t.grpcs, gateway.log)
	if err := t.waitReady(ctx, gateway); err != nil {
		return err
	}
	if err := t.calls(ctx); err != nil || t.once {
		return err
	}
	t.farewell()
	select {
	case <-ctx.Done():
	case <-gateway.exited:
	case <-extension.exited:
	}
	return nil
}

// start starts a program that run will stop.
func (t *tour) start(name, path, log string, args ...string) (*process, error) {
	p, err := start(name, path, filepath.Join(t.dir, log), args...)
	if err == nil {
		t.running = append(t.running, p)
	}
	return p, err
}

// waitReady waits until the gateway has asked the extension for its handlers.
func (t *tour) waitReady(ctx context.Context, gateway *process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if t.isReady(ctx) {
			return nil
		}
		select {
		case <-ticker.C:
		case <-gateway.exited:
			return errors.New("the gateway does not serve")
		case <-ctx.Done():
			return fmt.Errorf("the gateway is not ready (%s/readyz): %w\n%s", t.diags, ctx.Err(), gateway.lastWords())
		}
	}
}

func (t *tour) isReady(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.diags+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// calls makes the calls that the quickstart shows.
func (t *tour) calls(ctx context.Context) error {
	t.heading("Which handlers are there?")
	t.printf("The gateway has asked the extension. Each hook in the life of a Cluster has one handler here, which\n" +
		"stands for all that are registered for it; the handlers of other hooks have the extension's name behind\n" +
		"their own. Callers should wait a little longer than the gateway waits for the extension.\n\n")
	if err := t.hookgateCommand(ctx, 0, "get", "handlers", "--server", t.https, "--ca", t.files.ca); err != nil {
		return err
	}

	t.heading("May this Cluster be created? Over HTTPS JSON, as Cluster API asks")
	if err := t.curl(ctx); err != nil {
		return err
	}
	t.printf("\nNot yet: retryAfterSeconds makes Cluster API wait, and ask again. The extension wants an annotation.\n")

	approved := filepath.Join(t.requests, "before-cluster-create-approved.yaml")
	t.heading("The same Cluster with the annotation, over gRPC")
	t.excerpt(approved, "annotations:", 3)
	err := t.hookgateCommand(ctx, 0, "call", "BeforeClusterCreate", "-f", approved, "--server", t.grpcs,
		"--ca", t.files.ca)
	if err != nil {
		return err
	}
	t.printf("\nApproved: Cluster API would go on and create it. The extension speaks HTTPS JSON only; callers choose\n" +
		"what they speak, and the gateway translates.\n")

	t.heading("How shall these templates be patched? One handler, by name")
	patches := filepath.Join(t.requests, "generate-patches.yaml")
	t.excerpt(patches, "- name: nodeImage", 2)
	err = t.hookgateCommand(ctx, 0, "call", "GeneratePatches", "--handler", "node-image--rest-extension",
		"-f", patches, "--server", t.grpcs, "--ca", t.files.ca)
	if err != nil {
		return err
	}
	t.printf("\nThe request has four templates. The extension patches the two that are DockerMachineTemplates.\n")

	t.heading("Which variables do those patches need? The answer as YAML")
	variables := filepath.Join(t.requests, "discover-variables.yaml")
	err = t.hookgateCommand(ctx, 0, "call", "DiscoverVariables", "-f", variables, "-o", "yaml",
		"--server", t.https, "--ca", t.files.ca)
	if err != nil {
		return err
	}

	t.heading("A mistake: a handler that does not exist")
	return t.hookgateCommand(ctx, 1, "call", "GeneratePatches", "--handler", "node-imago", "-f", patches,
		"--server", t.https, "--ca", t.files.ca)
}

// hookgateCommand prints a command line of hookgate, runs it, and prints its output.
func (t *tour) hookgateCommand(ctx context.Context, want int, args ...string) error {
	t.printf("$ %s\n", commandLine(t.hookgate, args))
	absolute, err := filepath.Abs(t.hookgate)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, absolute, args...)
	output, err := command.CombinedOutput()
	t.printf("%s", indent(output))
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("run %s: %w", t.hookgate, err)
	}
	if got := command.ProcessState.ExitCode(); got != want {
		return fmt.Errorf("the command above ended with status %d instead of %d; the gateway's log is %s", got, want,
			filepath.Join(t.dir, "hookgate.log"))
	}
	if want != 0 {
		t.printf("\nThe exit status is %d. The gateway's log has this call too, by its call id.\n", want)
	}
	return nil
}

// curl prints a command line of curl and makes the same request, so that curl need not be installed.
func (t *tour) curl(ctx context.Context) error {
	request := filepath.Join(t.requests, "before-cluster-create.yaml")
	file := filepath.Join(t.dir, "before-cluster-create.json")
	if err := writeJSON(request, file); err != nil {
		return err
	}
	t.excerpt(request, "cluster:", 5)
	t.printf("$ %s\n",
		commandLine("curl", []string{"-i", "--cacert", t.files.ca, "--json", "@" + file, t.https + hookPath}))
	body, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, t.https+hookPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	post.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{TLSClientConfig: t.files.pair.ClientTLS()}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: startTimeout}).Do(post)
	if err != nil {
		return fmt.Errorf("call the gateway: %w", err)
	}
	answer, err := io.ReadAll(response.Body)
	if closeErr := response.Body.Close(); err != nil || closeErr != nil {
		return fmt.Errorf("read answer: %w", errors.Join(err, closeErr))
	}
	t.printf("  %s %s\n", response.Proto, response.Status)
	for _, name := range []string{"Content-Type", "Hookgate-Call-Id"} {
		t.printf("  %s: %s\n", name, response.Header.Get(name))
	}
	t.printf("\n%s", indent(answer))
	var blocked struct{ RetryAfterSeconds int }
	err = json.Unmarshal(answer, &blocked)
	if err != nil || response.StatusCode != http.StatusOK || blocked.RetryAfterSeconds == 0 {
		return errors.New("the answer above is not the expected one, which has status 200 and retryAfterSeconds")
	}
	t.printf("\nThe same with hookgate, which reads the request as YAML:\n$ %s\n",
		commandLine(t.hookgate,
			[]string{"call", "BeforeClusterCreate", "-f", request, "--server", t.https, "--ca", t.files.ca}))
	return nil
}

// farewell prints what to do next.
func (t *tour) farewell() {
	t.heading("Your turn: all of it keeps running")
	t.printf("In another terminal, in this directory:\n\n")
	call := func(args ...string) { t.printf("  %s\n", commandLine(t.hookgate, args)) }
	call("get", "handlers", "--server", t.https, "--ca", t.files.ca)
	call("call", "BeforeClusterCreate", "-f", filepath.Join(t.requests, "before-cluster-create.yaml"), "-o", "json",
		"--server", t.grpcs, "--ca", t.files.ca)
	t.printf("  %s\n", commandLine("curl", []string{
		"--cacert", t.files.ca, "--json", "@" + filepath.Join(t.dir, "before-cluster-create.json"), t.https + hookPath,
	}))
	t.printf("  %s\n", commandLine("curl", []string{t.diags + "/metrics"}))
	call("check", t.extensionURL, "--ca", t.files.ca)
	t.printf("\nIn a browser that trusts %s: %s/openapi/ describes every hook, and lets you try it.\n",
		t.files.ca, t.https)
	t.printf("\nTo see more: copy a request from %s, change it, and call again. Put an ExtensionConfig of\n"+
		"your own into %s: the gateway notices. Its log is %s.\n",
		t.requests, t.files.configDir, filepath.Join(t.dir, "hookgate.log"))
	t.printf("\nCtrl-C stops the gateway and the extension.\n")
}

// excerpt prints some lines of a request, beginning with the first that contains text.
func (t *tour) excerpt(file, from string, count int) {
	data, err := os.ReadFile(file)
	if err != nil {
		return // the call that follows says it
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	for i, line := range lines {
		if strings.Contains(line, from) && !strings.HasPrefix(line, "#") {
			end := min(i+count, len(lines))
			t.printf("From %s, lines %d to %d of %d:\n%s\n", file, i+1, end, len(lines),
				indent([]byte(strings.Join(lines[i:end], "\n"))))
			return
		}
	}
}

func (t *tour) heading(text string) {
	if t.step > 0 {
		text = fmt.Sprintf("%d. %s", t.step, text)
	}
	t.step++
	t.printf("\n── %s %s\n", text, strings.Repeat("─", max(3, 100-len(text))))
}

func (t *tour) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(t.out, format, args...) // a terminal that is gone ends the program by SIGHUP
}

// commandLine returns a command to copy, over two lines where one would be too long; a flag and its value stay
// together.
func commandLine(program string, args []string) string {
	const most = 118
	words := []string{program}
	for i, a := range args {
		if strings.ContainsAny(a, " \t\n\"'\\$&|;<>()*?#~`") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		if i > 0 && strings.HasPrefix(args[i-1], "-") && args[i-1] != "-i" && !strings.HasPrefix(a, "-") {
			words[len(words)-1] += " " + a
			continue
		}
		words = append(words, a)
	}
	var b strings.Builder
	column := 0
	for i, w := range words {
		switch {
		case i == 0:
		case column+1+len(w) > most:
			b.WriteString(" \\\n    ")
			column = 4
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(w)
		column += len(w)
	}
	return b.String()
}

// indent sets output off from the text around it.
func indent(text []byte) string {
	var b strings.Builder
	for line := range strings.Lines(string(bytes.TrimRight(text, "\n"))) {
		if line != "\n" {
			b.WriteString("  ")
		}
		b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}
