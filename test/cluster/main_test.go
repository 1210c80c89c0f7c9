// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// dirVariable is set inside of the namespaces: the directory of everything that the suite writes.
const dirVariable = "HOOKGATE_CLUSTER_DIR"

// cgroup is the cgroup of the node's Pods, in each hierarchy.
var cgroup = fmt.Sprintf("hookgate-test-%d", os.Getppid())

// skipped says why the tests cannot run here.
var skipped string

func TestMain(m *testing.M) {
	flag.Parse()
	if dir := os.Getenv(dirVariable); dir != "" {
		os.Exit(inside(m, dir))
	}
	if skipped = missing(); skipped != "" {
		if file := os.Getenv("HOOKGATE_NOT_CHECKED"); file != "" {
			err := os.WriteFile(file, []byte("NOT CHECKED: the product in Pods (make test-cluster): "+skipped+"\n"), 0o600)
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
		os.Exit(m.Run())
	}
	os.Exit(outside())
}

// missing says what the suite lacks here, or nothing.
func missing() string {
	if os.Getenv(binVariable) == "" {
		return binVariable + " is not set: make test-cluster builds the programs and sets it"
	}
	if reason, err := os.ReadFile(os.Getenv(binVariable) + ".missing"); err == nil {
		return strings.TrimSpace(string(reason))
	}
	if os.Getuid() != 0 {
		return "only root can make the namespaces, and this is not root"
	}
	for _, program := range []string{"unshare", "ip", "bash", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			return err.Error()
		}
	}
	if out, err := exec.Command("unshare", slices.Concat(namespaces, []string{"true"})...).CombinedOutput(); err != nil {
		return fmt.Sprintf("unshare cannot make namespaces: %v: %s", err, out)
	}
	return ""
}

var namespaces = []string{"--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--mount-proc", "--kill-child=KILL", "--"}

// outside runs this program again in namespaces of its own, and removes what is left of them.
func outside() int {
	runtime.LockOSThread() // with Pdeathsig, the child ends when this thread does
	dir, err := os.MkdirTemp("", "hookgate-cluster-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	groups := makeCgroups()
	self, err := os.Executable()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	// The first process adopts those of containers, and has to reap them: bash does.
	args := slices.Concat(namespaces, []string{"bash", "-c", `"$@" & wait $!`, "init", self}, os.Args[1:])
	cmd := exec.Command("unshare", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), dirVariable+"="+dir, cgroupVariable+"="+cgroup)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	code := cmd.ProcessState.ExitCode()
	if code == 0 && err != nil {
		fmt.Println(err)
		code = 1
	}
	if err := errors.Join(removeCgroups(groups), os.RemoveAll(dir)); err != nil {
		fmt.Println("what the suite made is still there:", err)
		code = max(code, 1)
	}
	return code
}

// makeCgroups makes the cgroup in each hierarchy.
func makeCgroups() []string {
	var made []string
	hierarchies, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		hierarchies = []string{"/sys/fs/cgroup/cgroup.procs"} // version 2 has one
	}
	for _, file := range hierarchies {
		group := filepath.Join(filepath.Dir(file), cgroup)
		if os.Mkdir(group, 0o755) == nil {
			made = append(made, group)
		}
	}
	return made
}

// removeCgroups removes them with those below them, whose processes have been killed and may take a moment to end.
func removeCgroups(groups []string) error {
	var left error
	for _, group := range groups {
		var all []string
		_ = filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				all = append(all, path)
			}
			return nil
		})
		for _, path := range slices.Backward(all) {
			if err := retry(func() error { return syscall.Rmdir(path) }); err != nil {
				left = errors.Join(left, fmt.Errorf("%s: %w", path, err))
			}
		}
	}
	return left
}

// inside starts the node, runs the tests, and leaves the end of all to that of the namespace of processes.
func inside(m *testing.M, dir string) int {
	n, err := startNode(dir)
	if err != nil {
		fmt.Println("start the node:", err)
		return 1
	}
	node = n
	return m.Run()
}
