// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// KubeOptions are the flags of commands for people that say which cluster they mean, as those of kubectl do.
type KubeOptions struct {
	Kubeconfig string
	context    string
}

// AddFlags adds the flags.
func (o *KubeOptions) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", "",
		"kubeconfig of the cluster; default: $KUBECONFIG or ~/.kube/config; in a Pod with neither of these, the "+
			"Pod's own credentials")
	f.StringVar(&o.context, "context", "", "context of the kubeconfig; default: the current context")
}

// Load returns the configuration of the cluster. It is an error of usage if there is none.
func (o *KubeOptions) Load() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	found := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: o.context})
	config, err := found.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, cmdline.Usagef("there is no cluster to connect to: want --kubeconfig FILE, or $KUBECONFIG, " +
			"or ~/.kube/config")
	case err != nil:
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return rest.AddUserAgent(config, "hookgate"), nil
}

// CompleteContexts completes the contexts of the kubeconfig.
func CompleteContexts(o *KubeOptions) cmdline.Completion {
	return cmdline.Complete(func(*cobra.Command, []string) []string {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = o.Kubeconfig
		config, err := rules.Load()
		if err != nil {
			return nil
		}
		var names []string
		for name := range config.Contexts {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	})
}

// InCluster reports whether the process runs in a Pod.
func InCluster() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" }
