// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeOptions are the flags of commands for people that say which cluster they mean, as those of kubectl do.
type kubeOptions struct {
	kubeconfig string
	context    string
}

func (o *kubeOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "",
		"kubeconfig of the cluster; by default $KUBECONFIG, or ~/.kube/config, or, in a Pod, the Pod's own credentials")
	f.StringVar(&o.context, "context", "", "context of the kubeconfig; by default its current one")
}

// load returns the configuration of the cluster. It is an error of usage if there is none.
func (o *kubeOptions) load() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	found := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: o.context})
	config, err := found.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, usagef("there is no cluster to ask: want --kubeconfig FILE, or $KUBECONFIG, or ~/.kube/config")
	case err != nil:
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return rest.AddUserAgent(config, "hookgate"), nil
}

// completeContexts completes the contexts of the kubeconfig.
func completeContexts(o *kubeOptions) completion {
	return complete(func(*cobra.Command, []string) []string {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = o.kubeconfig
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

// inCluster reports whether the process runs in a Pod.
func inCluster() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" }
