// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/process"
)

// role is the environment variable that makes the test program an extension or the callers.
const role = "HOOKGATE_FAULTS_ROLE"

func TestMain(m *testing.M) {
	roles := map[string]func([]string) error{"extension": runExtension, "callers": runCallers, "greedy": runGreedy}
	run, ok := roles[os.Getenv(role)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// play starts this program in a role.
func play(t *testing.T, as string, args ...string) *process.Process {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), role+"="+as)
	return process.Run(t, as, cmd)
}

// authority signs all certificates of a run.
type authority struct {
	*devcert.Authority
	client *tls.Config
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a, err := devcert.NewAuthority(time.Now().Add(24 * time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	signer := &authority{Authority: a}
	if signer.client, err = trusting(signer.dir(t)); err != nil {
		t.Fatal(err)
	}
	return signer
}

// dir returns a new directory with a certificate of a server on loopback, and of the hosts.
func (a *authority) dir(t *testing.T, hosts ...string) string {
	t.Helper()
	dir := t.TempDir()
	a.write(t, dir, time.Now().Add(12*time.Hour), hosts...)
	return dir
}

// write puts a new certificate into a directory.
func (a *authority) write(t *testing.T, dir string, notAfter time.Time, hosts ...string) {
	t.Helper()
	pair, err := a.Issue(notAfter, hosts...)
	if err == nil {
		err = pair.WriteDir(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// gateway is a gateway in a cage, with a directory source.
type gateway struct {
	*process.Gateway
	pid            int
	configs, certs string
	work           string   // its working directory and its directory of temporary files
	hosts          string   // a file in the place of /etc/hosts; empty for that of the machine
	log            *os.File // in the place of standard error; nil for the output
	profiler       string   // its address, if it has one
	flags          []string
	limit          int64 // of its memory
}

// startGateway starts a gateway with the manifests, by file name, and waits until it is ready.
func startGateway(t *testing.T, a *authority, manifests map[string]string, flags ...string) *gateway {
	t.Helper()
	g := newGateway(t, a, manifests, flags...)
	g.start(t, process.AnyPorts())
	return g
}

// newGateway returns a gateway that has not been started yet.
func newGateway(t *testing.T, a *authority, manifests map[string]string, flags ...string) *gateway {
	t.Helper()
	g := &gateway{configs: t.TempDir(), certs: a.dir(t), work: t.TempDir(), flags: flags, limit: memoryLimit}
	for file, text := range manifests {
		g.write(t, file, text)
	}
	return g
}

// again starts a gateway that has ended, at the addresses that it had.
func (g *gateway) again(t *testing.T) {
	t.Helper()
	g.start(t, []string{"--http-address=" + g.HTTPS, "--grpc-address=" + g.GRPC, "--diagnostics-address=" + g.Diagnostics})
}

// start starts the process in a cage, and waits until it is ready.
func (g *gateway) start(t *testing.T, addresses []string) {
	t.Helper()
	program := process.Program(t, "HOOKGATE_BIN")
	c := newCage(t, g.limit)
	args := append([]string{"serve", "--extension-configs", g.configs, "--cert-dir", g.certs, "--resync", "1s"}, addresses...)
	args = append([]string{program}, append(args, g.flags...)...)
	if g.hosts != "" {
		args = append([]string{"/bin/sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, g.hosts}, args...)
	}
	if g.log != nil {
		args = append([]string{"/bin/sh", "-c", `exec "$0" "$@" 2>&3 3>&-`}, args...)
	}
	cmd := c.command(args[0], args[1:]...)
	if g.hosts != "" {
		cmd.SysProcAttr = ownMounts()
	}
	if g.log != nil {
		cmd.ExtraFiles = []*os.File{g.log}
	}
	cmd.Dir = g.work
	cmd.Env = append(os.Environ(), "TMPDIR="+g.work)
	g.Gateway = process.RunGateway(t, cmd)
	pids, err := g.PIDs()
	if err != nil {
		t.Fatal(err)
	}
	g.pid = pids[0]
	c.watch(g.Process, g.pid)
	g.WaitReady(t)
}

// ownMounts gives a process mounts of its own. Without the rights of root, it is root of a namespace of its own, too.
func ownMounts() *syscall.SysProcAttr {
	if os.Geteuid() == 0 {
		return &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, Unshareflags: syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
}

// write replaces a manifest in one step.
func (g *gateway) write(t *testing.T, file, text string) {
	t.Helper()
	replace(t, filepath.Join(g.configs, file), text)
}

// replace replaces a file in one step.
func replace(t *testing.T, path, text string) {
	t.Helper()
	hidden := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	err := os.WriteFile(hidden, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(hidden, path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// get returns what the diagnostics address answers.
func (g *gateway) get(t *testing.T, path string) string {
	t.Helper()
	return get(t, "http://"+g.Diagnostics+path)
}

// get returns what is at a URL.
func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	got, err := send(oneTime, request)
	if err != nil || got.code != http.StatusOK {
		t.Fatalf("get %s: status %d, %v: %s", url, got.code, err, got.body)
	}
	return string(got.body)
}

// freeAddress returns an address on loopback that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", process.FreePort(t))
}

// oneTime keeps no connection, which would count as one that was left behind.
var oneTime = &http.Client{Timeout: 40 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// config is an ExtensionConfig.
func (a *authority) config(name, url string) string {
	return fmt.Sprintf("apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: %s}\n"+
		"spec: {clientConfig: {url: %q, caBundle: %s}}\n", name, url, base64.StdEncoding.EncodeToString(a.PEM))
}

// program is the process of an extension.
type program struct {
	*process.Process
	https, grpcs string // its addresses
	client       *http.Client
}

// startExtension starts an extension that behaves like that.
func startExtension(t *testing.T, a *authority, behavior string) *program {
	t.Helper()
	return startExtensionAt(t, a, behavior, a.dir(t), "127.0.0.1:0", "127.0.0.1:0")
}

// startExtensionAt is startExtension with a directory of certificates and the addresses for JSON and gRPC.
func startExtensionAt(t *testing.T, a *authority, behavior, certs, https, grpcs string) *program {
	t.Helper()
	p := &program{
		Process: play(t, "extension", behavior, certs, https, grpcs), client: newClient(healthyCaller, a.client),
	}
	t.Cleanup(p.client.CloseIdleConnections)
	addresses := p.Expect(t, `extension serving https=(\S+) grpcs=(\S+)\n`)
	p.https, p.grpcs = addresses[1], addresses[2]
	return p
}

// calls returns how many calls of the hook have reached the extension.
func (p *program) calls(t *testing.T) int {
	t.Helper()
	return p.count(t, "/calls")
}

// connections returns how many connections over gRPC an extension that intrudes on them has had.
func (p *program) connections(t *testing.T) int {
	t.Helper()
	return p.count(t, "/connections")
}

// count returns a number that the extension answers.
func (p *program) count(t *testing.T, path string) int {
	t.Helper()
	n, err := strconv.Atoi(p.get(t, path))
	if err != nil {
		t.Fatalf("ask the extension for %s: %v", path, err)
	}
	return n
}

// awaitCalls waits until so many calls of the hook have reached the extension.
func (p *program) awaitCalls(t *testing.T, calls int) {
	t.Helper()
	process.Eventually(t, "the calls reach the extension", func() bool { return p.calls(t) >= calls })
}

// release lets an extension answer the calls that it holds.
func (p *program) release(t *testing.T) {
	t.Helper()
	p.get(t, "/release")
}

// get returns what the extension answers beside its hooks.
func (p *program) get(t *testing.T, path string) string {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, "https://"+p.https+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	got, err := send(p.client, request)
	if err != nil || got.code != http.StatusOK {
		t.Fatalf("ask the extension for %s: status %d, %v", path, got.code, err)
	}
	return string(got.body)
}

// signal sends a signal to the extension.
func (p *program) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	pids, err := p.PIDs()
	if err == nil {
		err = syscall.Kill(pids[0], s)
	}
	if err != nil {
		t.Fatalf("signal the extension: %v", err)
	}
	if s == syscall.SIGSTOP {
		process.Eventually(t, "the extension has stopped", func() bool { return hasStopped(t, pids[0]) })
	}
}

// hasStopped reports whether no thread of a process runs any more: on a busy machine, that comes after the signal.
func hasStopped(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("threads of the extension: %d, %v", len(threads), err)
	}
	for _, thread := range threads {
		// The state is behind the name of the program, which is in parentheses.
		stat, err := os.ReadFile(thread)
		if i := bytes.LastIndexByte(stat, ')'); err != nil || !bytes.HasPrefix(stat[i+1:], []byte(" T")) {
			return false
		}
	}
	return true
}

// fixture is a gateway under the load of healthy callers.
type fixture struct {
	*authority
	gateway *gateway
	good    *program
	callers string       // their address
	rest    *http.Client // of the attacker
	// registered counts the extensions of rows.
	registered int
	// slow are connections that stay while other rows are injected.
	slow *slowHeaders
}

// newFixture starts everything that is healthy.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	process.Program(t, "HOOKGATE_BIN")
	w := &fixture{authority: newAuthority(t)}
	w.good = startExtension(t, w.authority, healthy)
	profiler := freeAddress(t)
	w.gateway = startGateway(t, w.authority, map[string]string{
		"good-rest.yaml": w.config("good-rest", "https://"+w.good.https),
		"good-grpc.yaml": w.config("good-grpc", "grpcs://"+w.good.grpcs),
	}, "--profiler-address="+profiler)
	w.gateway.profiler = profiler
	w.rest = newClient(attacker, w.client)
	w.awaitHandler(t, "good-rest")
	w.awaitHandler(t, "good-grpc")
	p := play(t, "callers", w.gateway.certs, w.gateway.HTTPS, w.gateway.GRPC, handler+".good-rest", handler+".good-grpc")
	w.callers = p.Expect(t, `callers reporting http=(\S+)\n`)[1]
	yield(t)
	return w
}

// yield lets the processors prefer what runs by now, the gateway and all that is healthy, to this process and those that
// it starts from now on: attackers, fault proxies and faulty extensions. They would otherwise take the time of healthy
// callers, which in reality are on machines of their own.
//
// In the soak, whose latencies are compared, they have only the time that nothing else wants (SCHED_IDLE), where there
// is chrt of util-linux. Beside other suites they would then not get any for minutes.
func yield(t *testing.T) {
	t.Helper()
	if os.Getenv(soakVariable) != "" {
		out, err := exec.Command("chrt", "--all-tasks", "--idle", "--pid", "0", strconv.Itoa(os.Getpid())).CombinedOutput()
		if err == nil {
			return
		}
		t.Logf("attackers share the processors with healthy callers: chrt: %v: %s", err, out)
	}
	const low = 10
	threads, err := filepath.Glob("/proc/self/task/*")
	if err != nil || len(threads) == 0 { // not on Linux
		threads = []string{strconv.Itoa(os.Getpid())}
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(filepath.Base(thread))
		if err == nil {
			err = syscall.Setpriority(syscall.PRIO_PROCESS, id, low) // threads that it starts inherit it
		}
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatalf("lower the priority of the suite: %v", err)
		}
	}
}

// awaitHandler waits until the handler of an extension can be called.
func (w *fixture) awaitHandler(t *testing.T, extension string) {
	t.Helper()
	process.Eventually(t, "the gateway knows "+extension, func() bool { return w.knows(extension) })
}

// register adds an extension until the row ends, and waits until the gateway knows it. It returns its name, which no
// other row has.
func (w *fixture) register(t *testing.T, url string) string {
	t.Helper()
	name, remove := w.add(t, url)
	t.Cleanup(func() {
		remove()
		process.Eventually(t, "the gateway has forgotten "+name, func() bool { return !w.knows(name) })
	})
	w.awaitHandler(t, name)
	return name
}

// add writes the manifest of an extension, and returns its name and a function that removes it.
func (w *fixture) add(t *testing.T, url string) (name string, remove func()) {
	t.Helper()
	w.registered++
	name = fmt.Sprintf("faulty-%d", w.registered)
	file := filepath.Join(w.gateway.configs, name+".yaml")
	replace(t, file, w.config(name, url))
	return name, func() { _ = os.Remove(file) }
}

// knows reports whether the gateway offers what an extension has, in its own discovery. That calls no extension.
func (w *fixture) knows(extension string) bool {
	return bytes.Contains(w.discovered(), []byte(`"`+sign+"--"+extension+`"`))
}

// discovered returns the gateway's own discovery; nil if it does not answer.
func (w *fixture) discovered() []byte {
	request, err := http.NewRequest(http.MethodPost, "https://"+w.gateway.HTTPS+"/"+apiVersion+"/discovery",
		strings.NewReader(`{}`))
	if err != nil {
		return nil
	}
	got, err := send(w.rest, request)
	if err != nil || got.code != http.StatusOK {
		return nil
	}
	return got.body
}

// look returns what the healthy callers saw since the last look.
func (w *fixture) look(t *testing.T) window {
	t.Helper()
	var seen window
	if err := json.Unmarshal([]byte(get(t, "http://"+w.callers+"/")), &seen); err != nil {
		t.Fatalf("ask the callers: %v", err)
	}
	return seen
}
