// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command generate writes the files of a release that clusterctl reads, what an operator applies beside them, the Helm
// charts, the plug-in of kubectl, the man pages, and the OpenAPI documents for those who write extensions. The same sources, version and
// kustomize give the same bytes, anywhere and at any time. The manifests define the installed objects, and `make image` builds the image.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/gen/openapi"
)

// The files of a release. clusterctl expects the names of the first three, and those of templates.
const (
	componentsFile     = "runtime-extension-components.yaml"
	infrastructureFile = "infrastructure-components.yaml"
	metadataFile       = "metadata.yaml"
	registerFile       = "register.yaml"
	jobsFile           = "jobs.yaml"
	documentFile       = "hooks.openapi.json"
	providerFile       = "infrastructure.openapi.json"
	machinesFile       = "machines.openapi.json"
	checksumsFile      = "SHA256SUMS"
)

// infrastructureDir is the directory, in that of the release, of the infrastructure provider. clusterctl gets its
// templates as they are.
const infrastructureDir = "infrastructure"

// templates match the names of clusterctl's templates and ClusterClasses.
var templates = []string{"cluster-template*.yaml", "clusterclass-*.yaml"}

// manifestImage is the image that the manifests name.
const manifestImage = "ghcr.io/hookgate/hookgate"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// options holds the inputs of a release.
type options struct {
	version, image, kustomize, source, binaries, output string
}

func run(args []string) error {
	var o options
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&o.version, "version", "", "version of the release, which is the image's tag")
	flags.StringVar(&o.image, "image", manifestImage, "name of the image, without a tag")
	flags.StringVar(&o.kustomize, "kustomize", "", "path of kustomize")
	flags.StringVar(&o.source, "source", "", "directory with the manifests of the release")
	flags.StringVar(&o.binaries, "binaries", "", "directory with programs that are files of the release, if any")
	flags.StringVar(&o.output, "output", "", "directory to write to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, required := range []struct{ name, value string }{{"-kustomize", o.kustomize}, {"-source", o.source}, {"-output", o.output}} {
		if required.value == "" {
			return fmt.Errorf("%s is required", required.name)
		}
	}
	files, err := o.files()
	if err != nil {
		return err
	}
	return write(o.output, files)
}

// files returns the release's files by name.
func (o *options) files() (map[string][]byte, error) {
	major, minor, err := series(o.version)
	if err != nil {
		return nil, err
	}
	metadata, err := os.ReadFile(filepath.Join(o.source, metadataFile))
	if err != nil {
		return nil, err
	}
	if err := checkSeries(metadata, major, minor); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(o.source, metadataFile), err)
	}
	register, err := os.ReadFile(filepath.Join(o.source, registerFile))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		metadataFile: metadata, registerFile: register,
		documentFile: []byte(openapi.Document), providerFile: []byte(openapi.Infrastructure),
		machinesFile: []byte(openapi.Machines),
	}
	if files[jobsFile], err = o.jobs(); err != nil {
		return nil, err
	}
	if files[componentsFile], err = o.render(o.source); err != nil {
		return nil, err
	}
	infrastructure := filepath.Join(o.source, infrastructureDir)
	if files[infrastructureFile], err = o.render(infrastructure); err != nil {
		return nil, err
	}
	for _, chart := range charts {
		name, archive, err := o.chart(chart)
		if err != nil {
			return nil, err
		}
		files[name] = archive
	}
	if files[manPagesFile], err = o.manPages(); err != nil {
		return nil, err
	}
	if err := o.programs(files); err != nil {
		return nil, err
	}
	if err := o.plugin(files); err != nil {
		return nil, err
	}
	for _, pattern := range templates {
		found, err := filepath.Glob(filepath.Join(infrastructure, pattern))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: no file matches", filepath.Join(infrastructure, pattern))
		}
		for _, path := range found {
			if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// jobs returns the namespace of the Jobs of HookJobs and what the gateway may do there. clusterctl allows one namespace
// among the components, and none of their objects in another.
func (o *options) jobs() ([]byte, error) {
	var parts [][]byte
	for _, name := range []string{"namespace.yaml", "rbac.yaml"} {
		part, err := os.ReadFile(filepath.Join(o.source, "..", "jobs", name))
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return bytes.Join(parts, []byte("---\n")), nil
}

// programs adds the programs to the files.
func (o *options) programs(files map[string][]byte) error {
	if o.binaries == "" {
		return nil
	}
	entries, err := os.ReadDir(o.binaries)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if _, taken := files[entry.Name()]; taken {
			return fmt.Errorf("%s: the release already has a different file with this name",
				filepath.Join(o.binaries, entry.Name()))
		}
		if files[entry.Name()], err = os.ReadFile(filepath.Join(o.binaries, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// semantic is a semantic version with a leading v, without what an image's tag cannot have (the build after a plus).
var semantic = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?$`)

// series returns the release series of a version.
func series(version string) (major, minor uint, err error) {
	m := semantic.FindStringSubmatch(version)
	if m == nil {
		return 0, 0, fmt.Errorf("version %q: want a semantic version with a leading v and without build metadata, "+
			"such as v0.1.0 or v0.2.0-rc.1", version)
	}
	for i, number := range []*uint{&major, &minor} {
		n, err := strconv.ParseUint(m[i+1], 10, 31)
		if err != nil {
			return 0, 0, fmt.Errorf("version %q: %w", version, err)
		}
		*number = uint(n)
	}
	return major, minor, nil
}

// checkSeries returns an error unless clusterctl will know the contract of a version.
func checkSeries(metadata []byte, major, minor uint) error {
	var m struct {
		APIVersion    string `json:"apiVersion"`
		Kind          string `json:"kind"`
		ReleaseSeries []struct {
			Major    uint   `json:"major"`
			Minor    uint   `json:"minor"`
			Contract string `json:"contract"`
		} `json:"releaseSeries"`
	}
	if err := yaml.UnmarshalStrict(metadata, &m); err != nil {
		return err
	}
	for _, s := range m.ReleaseSeries {
		if s.Major == major && s.Minor == minor {
			return nil
		}
	}
	return fmt.Errorf("there is no release series %d.%d: add it, with the contract of Cluster API that it implements", major, minor)
}

// render returns the components that a directory describes, with the image of the release.
func (o *options) render(directory string) (_ []byte, err error) {
	dir, err := os.MkdirTemp("", "hookgate-release-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// kustomize accepts only relative paths of folders, and resolves links itself.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	source, err := filepath.Abs(directory)
	if err != nil {
		return nil, err
	}
	if source, err = filepath.EvalSymlinks(source); err != nil {
		return nil, err
	}
	relative, err := filepath.Rel(dir, source)
	if err != nil {
		return nil, err
	}
	kustomization, err := yaml.Marshal(map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1",
		"kind":       "Kustomization",
		"resources":  []string{filepath.ToSlash(relative)},
		"images":     []map[string]string{{"name": manifestImage, "newName": o.image, "newTag": o.version}},
	})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), kustomization, 0o600); err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	cmd := exec.Command(o.kustomize, "build", dir) //nolint:gosec // the flag names it
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kustomize build %s: %w: %s", directory, err, strings.TrimSpace(stderr.String()))
	}
	if stderr.Len() > 0 { // a warning: what it says is to be changed in the manifests
		return nil, fmt.Errorf("kustomize build %s: %s", directory, strings.TrimSpace(stderr.String()))
	}
	if image := "image: " + o.image + ":" + o.version + "\n"; !bytes.Contains(out, []byte(image)) {
		return nil, fmt.Errorf("%s: no container has the image %s: the release sets the tag of this image only", directory,
			manifestImage)
	}
	return out, nil
}

// write writes the files, and last their checksums in the format of sha256sum.
func write(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for everyone
		return err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	var checksums bytes.Buffer
	for _, name := range names {
		fmt.Fprintf(&checksums, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	files[checksumsFile] = checksums.Bytes()
	for _, name := range append(names, checksumsFile) {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o644); err != nil { //nolint:gosec // for everyone
			return err
		}
	}
	return nil
}
