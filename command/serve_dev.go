// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/internal/network/endpoint"
	"github.com/hookgate/hookgate/registry"
)

const (
	// devCertificates is how long certificates of --dev are valid.
	devCertificates = 90 * 24 * time.Hour
	// devGRPCAddress and devResync are defaults with --dev: the extension often has port 9090 itself, and is restarted
	// all the time.
	devGRPCAddress = "127.0.0.1:9444"
	devResync      = time.Second
)

// devOptions are the flags for development on one machine.
type devOptions struct {
	enabled    bool
	extensions []string
	program    string // what commands to copy begin with
}

func (o *devOptions) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.enabled, "dev", false,
		"for development: make the certificates, listen on loopback only, and print commands to call hooks with. The "+
			"certificates are in --cert-dir (default: hookgate/dev in the user's cache directory), and the next "+
			"start uses them again; --dev also changes defaults: --grpc-address is "+devGRPCAddress+", and --resync is "+
			devResync.String())
	f.StringArrayVar(&o.extensions, "extension", nil,
		"URL of an extension to serve with --dev, instead of a directory; may be given several times. For REST: "+
			"https://HOST:PORT. For gRPC: grpcs://HOST:PORT, grpc://HOST:PORT (loopback only) or unix:///PATH. NAME=URL also "+
			"names the extension, as an ExtensionConfig would. With TLS, the extension's certificate must be signed by "+
			devcert.CAFile+" in --cert-dir")
}

// setDefaults changes the defaults of unset flags where --dev needs other ones.
func (o *serveOptions) setDevDefaults(changed func(flag string) bool) {
	if !o.dev.enabled {
		return
	}
	if !changed("grpc-address") && o.sidecar == "" {
		o.grpcAddress = devGRPCAddress
	}
	if !changed("resync") {
		o.resync = devResync
	}
	if dir, err := os.UserCacheDir(); err == nil && o.certDir == "" {
		o.certDir = filepath.Join(dir, "hookgate", "dev")
	}
}

// checkDev returns an error of usage unless the flags fit together with --dev, or without it.
func (o *serveOptions) checkDev() error {
	if !o.dev.enabled {
		if len(o.dev.extensions) > 0 {
			return cmdline.Usagef("--extension is for development, and needs --dev; use --sidecar for the one extension " +
				"beside the gateway, or --extension-configs")
		}
		return nil
	}
	switch {
	case o.cluster.kubeconfig != "":
		return cmdline.Usagef("--dev and --kubeconfig: a gateway for development has no cluster; give only one of these " +
			"flags")
	case len(o.dev.extensions) > 0 && (o.sidecar != "" || o.extensionConfigs != ""):
		return cmdline.Usagef("--extension takes the place of --extension-configs and --sidecar; give only one of these " +
			"flags")
	case len(o.dev.extensions) == 0 && o.sidecar == "" && o.extensionConfigs == "":
		return cmdline.Usagef("--dev needs an extension: give --extension URL, --extension-configs for the " +
			"extensions of a directory, or --sidecar")
	case o.diagnostics.insecure:
		return cmdline.Usagef("--dev and --insecure-diagnostics: a gateway for development listens on loopback only; " +
			"give only one of these flags")
	case o.certDir == "":
		return cmdline.Usagef("--cert-dir is required: the user has no cache directory, in which --dev would keep its " +
			"certificates")
	}
	for _, a := range []struct{ flag, address string }{
		{"--http-address", o.httpAddress}, {"--grpc-address", o.grpcAddress}, {"--health-addr", o.diagnostics.health},
		{"--diagnostics-address", o.diagnostics.address}, {"--profiler-address", o.diagnostics.profiler},
	} {
		if a.address != "" && !cmdline.IsLoopback(a.address) {
			return cmdline.Usagef("--dev and %s %s: a gateway for development listens on loopback only", a.flag, a.address)
		}
	}
	_, err := o.dev.registrations()
	return err
}

// registrations returns the ExtensionConfigs that --extension stands for.
func (o *devOptions) registrations() ([]*runtimev1.ExtensionConfig, error) {
	var configs []*runtimev1.ExtensionConfig
	names := map[string]bool{}
	for i, value := range o.extensions {
		name, url, named := strings.Cut(value, "=")
		if !named || strings.Contains(name, "://") {
			url, name = value, "extension"
			if i > 0 {
				name = fmt.Sprintf("extension-%d", i+1)
			}
		}
		if err := registry.CheckName(name); err != nil {
			return nil, cmdline.Usagef("--extension %q: the name %w", name, err)
		}
		if names[name] {
			return nil, cmdline.Usagef("--extension: two extensions have the name %s", name)
		}
		names[name] = true
		if _, err := endpoint.Parse(url, endpoint.HTTPS, endpoint.GRPCS, endpoint.GRPC, endpoint.Unix); err != nil {
			return nil, cmdline.Usagef("--extension: the URL %w", err)
		}
		client := registry.ClientConfig{Protocol: registry.ProtocolOf(url), URL: url}
		if err := client.CheckURL(); err != nil {
			return nil, cmdline.Usagef("--extension: the URL %w", err)
		}
		configs = append(configs, &runtimev1.ExtensionConfig{
			TypeMeta:   metav1.TypeMeta{APIVersion: runtimev1.GroupVersion.String(), Kind: "ExtensionConfig"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       runtimev1.ExtensionConfigSpec{ClientConfig: runtimev1.ClientConfig{URL: url}},
		})
	}
	return configs, nil
}

// openDev makes what --dev serves with: the certificates, and the directory of ExtensionConfigs that --extension takes
// the place of. It returns what removes the directory.
func (o *serveOptions) openDev() (remove func(), err error) {
	remove = func() {}
	if !o.dev.enabled {
		return remove, nil
	}
	_, _, err = devcert.Keep(o.certDir, time.Now().Add(devCertificates))
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return nil, fmt.Errorf("--dev: %w: with --cert-dir, name a writable directory, such as an emptyDir of a "+
			"Pod", err)
	case err != nil:
		return nil, fmt.Errorf("--dev: %w", err)
	}
	configs, err := o.dev.registrations()
	if err != nil || len(configs) == 0 {
		return remove, err
	}
	ca, err := os.ReadFile(filepath.Join(o.certDir, devcert.CAFile))
	if err != nil {
		return nil, fmt.Errorf("--dev: %w", err)
	}
	dir, err := os.MkdirTemp("", "hookgate-dev-")
	if err != nil { // the image has no directory for temporary files
		dir, err = os.MkdirTemp(o.certDir, "hookgate-dev-")
	}
	if err != nil {
		return nil, fmt.Errorf("--dev: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	for _, c := range configs {
		if e, err := endpoint.Parse(c.Spec.ClientConfig.URL, endpoint.HTTPS, endpoint.GRPCS); err == nil && e.HasTLS() {
			c.Spec.ClientConfig.CABundle = ca
		}
		data, err := json.Marshal(c)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, c.Name+".json"), data, 0o600)
		}
		if err != nil {
			remove()
			return nil, fmt.Errorf("--dev: %w", err)
		}
	}
	o.extensionConfigs = dir
	return remove, nil
}
