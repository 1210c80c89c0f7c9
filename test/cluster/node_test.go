// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/process"
)

const (
	// binVariable names the directory with kubelet, containerd and so on.
	binVariable = "HOOKGATE_CLUSTER_BIN"
	// assetsVariable names the directory with kube-apiserver, etcd, kube-controller-manager and kubectl.
	assetsVariable = "KUBEBUILDER_ASSETS"
	cgroupVariable = "HOOKGATE_CLUSTER_CGROUP"
	// nodeIP is the address of the node, at which the API server is, too.
	nodeIP = "10.245.0.1"
	etcd   = "http://127.0.0.1:2379"
)

//go:embed testdata
var files embed.FS

// node is the cluster of all tests.
var node *Node

// Node is a cluster of one node.
type Node struct {
	dir        string // of all that it writes
	kubeconfig string // of an administrator
	logs       map[string]*process.Process
}

// users are those of the API server: what the components are, and their groups.
var users = map[string]string{
	"admin":                          "system:masters",
	"system:kube-scheduler":          "",
	"system:kube-controller-manager": "",
	"system:kube-proxy":              "",
	"system:node:node1":              "system:nodes",
}

// startNode starts the programs of the cluster, each when what it needs is there, and waits until the node is ready.
func startNode(dir string) (*Node, error) {
	n := &Node{dir: dir, kubeconfig: filepath.Join(dir, "admin.kubeconfig"), logs: map[string]*process.Process{}}
	for _, step := range []func() error{n.isolate, n.writeFiles, n.startControlPlane, n.startContainerd, n.startKubelet} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// isolate makes the network, and hides the directories in which the programs would leave something.
func (n *Node) isolate() error {
	// The kubelet sets these for the whole machine, unless it finds them as it wants them.
	for path, value := range map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	} {
		file := filepath.Join(n.dir, "sysctl", path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := run("mount", "--bind", file, filepath.Join("/proc/sys", path)); err != nil {
			return err
		}
	}
	for _, command := range []string{
		"mount -t tmpfs tmpfs /run", "mount -t tmpfs tmpfs /var/lib", "mount -t tmpfs tmpfs /var/log",
		"ip link set lo up",
		"ip link add hgnode type bridge", "ip addr add " + nodeIP + "/24 dev hgnode", "ip link set hgnode up",
		// Addresses of Services need a route before kube-proxy's rules rewrite them.
		"ip route add 10.96.0.0/24 dev hgnode",
	} {
		if err := run(strings.Fields(command)...); err != nil {
			return err
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
}

// writeFiles writes the certificates, kubeconfigs and configuration files.
func (n *Node) writeFiles() error {
	end := time.Now().Add(24 * time.Hour)
	ca, err := devcert.NewAuthority(end)
	if err != nil {
		return err
	}
	pair, err := ca.Issue(end, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		"10.96.0.1", nodeIP, "node1")
	if err != nil {
		return err
	}
	if err := pair.WriteDir(n.dir); err != nil {
		return err
	}
	var tokens strings.Builder
	for user, groups := range users {
		fmt.Fprintf(&tokens, "token-%s,%s,%s,%q\n", user, user, user, groups)
		name := user[strings.LastIndex(user, ":")+1:]
		text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: test,
clusters: [{name: test, cluster: {server: "https://%s:6443", certificate-authority: %s/dev-ca.crt}}],
users: [{name: test, user: {token: "token-%s"}}],
contexts: [{name: test, context: {cluster: test, user: test}}]}
`, nodeIP, n.dir, user)
		if err := os.WriteFile(filepath.Join(n.dir, name+".kubeconfig"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(n.dir, "tokens.csv"), []byte(tokens.String()), 0o600); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(n.dir, "cni"), 0o755); err != nil {
		return err
	}
	for name, to := range map[string]string{"containerd.toml": "", "kubelet.yaml": "", "proxy.yaml": "", "resolv.conf": "", "10-bridge.conflist": "cni"} {
		t, err := template.ParseFS(files, "testdata/node/"+name)
		if err != nil {
			return err
		}
		f, err := os.Create(filepath.Join(n.dir, to, name))
		if err != nil {
			return err
		}
		err = t.Execute(f, map[string]string{"Dir": n.dir, "Bin": os.Getenv(binVariable), "IP": nodeIP, "Cgroup": os.Getenv(cgroupVariable)})
		if err := f.Close(); err != nil {
			return err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// start starts a program, which ends with the namespace.
func (n *Node) start(name string, args ...string) error {
	var path string
	dirs := []string{os.Getenv(binVariable), assets(), os.Getenv(allVariable)}
	for _, dir := range dirs {
		path = filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			break
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = n.dir
	cmd.Env = append(os.Environ(), "PATH="+dirs[0]+":"+os.Getenv("PATH"), "LD_LIBRARY_PATH="+filepath.Join(dirs[0], "lib"),
		"XTABLES_LIBDIR="+filepath.Join(dirs[0], "xtables"))
	p, err := process.Start(name, cmd)
	n.logs[name] = p
	return err
}

func (n *Node) startControlPlane() error {
	if err := n.start("etcd", "--data-dir", "etcd", "--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--unsafe-no-fsync"); err != nil {
		return err
	}
	err := n.start("kube-apiserver", "--etcd-servers="+etcd, "--bind-address="+nodeIP, "--advertise-address="+nodeIP,
		"--service-cluster-ip-range=10.96.0.0/24", "--allow-privileged", "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--tls-cert-file=tls.crt", "--tls-private-key-file=tls.key", "--token-auth-file=tokens.csv",
		"--kubelet-preferred-address-types=InternalIP", "--kubelet-client-certificate=tls.crt", "--kubelet-client-key=tls.key",
		"--kubelet-certificate-authority=dev-ca.crt", "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=tls.crt", "--service-account-signing-key-file=tls.key")
	if err != nil {
		return err
	}
	if err := n.await("kube-apiserver", "get", "--raw", "/readyz"); err != nil {
		return err
	}
	err = n.start("kube-controller-manager", "--kubeconfig=kube-controller-manager.kubeconfig", "--service-account-private-key-file=tls.key",
		"--root-ca-file=dev-ca.crt", "--use-service-account-credentials", "--bind-address=127.0.0.1", "--leader-elect=false", "--allocate-node-cidrs=false")
	if err != nil {
		return err
	}
	return n.start("kube-scheduler", "--kubeconfig=kube-scheduler.kubeconfig", "--bind-address=127.0.0.1", "--leader-elect=false")
}

func (n *Node) startContainerd() error {
	if err := n.start("containerd", "--config", "containerd.toml"); err != nil {
		return err
	}
	if err := n.awaitWith("containerd", func() error { return n.ctr("version") }); err != nil {
		return err
	}
	archive := filepath.Join(n.dir, "test.tar")
	if err := writeImage(archive); err != nil {
		return err
	}
	images := []string{archive, os.Getenv(imageVariable)}
	if dir := os.Getenv(allVariable); dir != "" {
		images = append(images, filepath.Join(dir, "earlier", "image.tar"))
	}
	for _, image := range images {
		if err := n.ctr("-n", "k8s.io", "images", "import", image); err != nil {
			return fmt.Errorf("import the image %s: %w", image, err)
		}
	}
	return os.Remove(archive)
}

func (n *Node) startKubelet() error {
	err := n.start("kubelet", "--config=kubelet.yaml", "--kubeconfig=node1.kubeconfig", "--root-dir="+filepath.Join(n.dir, "kubelet"),
		"--cert-dir="+filepath.Join(n.dir, "kubelet"), "--node-ip="+nodeIP, "--hostname-override=node1")
	if err != nil {
		return err
	}
	if err := n.start("kube-proxy", "--config=proxy.yaml"); err != nil {
		return err
	}
	if err := n.await("kubelet", "wait", "node/node1", "--for=condition=Ready", "--timeout=10s"); err != nil {
		return err
	}
	if err := run(n.kubectlArgs("apply", "--server-side", "-f", n.file("node/coredns.yaml"))...); err != nil {
		return err
	}
	return n.await("kubelet", "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=10s")
}

// await repeats a command of kubectl until it succeeds. The error has the end of the log of the program that is waited for.
func (n *Node) await(program string, args ...string) error {
	return n.awaitWith(program, func() error { return run(n.kubectlArgs(args...)...) })
}

func (n *Node) awaitWith(program string, try func() error) error {
	p := n.logs[program]
	ended := false
	err := retry(func() error {
		select {
		case <-p.Exited():
			ended = true
			return nil
		default:
			return try()
		}
	})
	if ended {
		err = errors.New("has ended")
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, p.LogTail())
	}
	return nil
}

func (n *Node) kubectlArgs(args ...string) []string {
	return append([]string{filepath.Join(assets(), "kubectl"), "--kubeconfig", n.kubeconfig}, args...)
}

func (n *Node) ctr(args ...string) error {
	return run(append([]string{filepath.Join(os.Getenv(binVariable), "ctr"), "-a", filepath.Join(n.dir, "containerd.sock")}, args...)...)
}

// file writes a file of testdata where programs can read it.
func (n *Node) file(name string) string {
	data, err := files.ReadFile("testdata/" + name)
	if err != nil {
		panic(err)
	}
	path := filepath.Join(n.dir, filepath.Base(name))
	if err := os.WriteFile(path, data, 0o644); err != nil {
		panic(err)
	}
	return path
}

// assets is the directory of the programs of the control plane.
func assets() string { return os.Getenv(assetsVariable) }

// run runs a command. Its output is in the error.
func run(args ...string) error {
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// retry repeats try until it succeeds. It returns the last error after process.Patience.
func retry(try func() error) error {
	for end := time.Now().Add(process.Patience); ; time.Sleep(100 * time.Millisecond) {
		if err := try(); err == nil || time.Now().After(end) {
			return err
		}
	}
}
