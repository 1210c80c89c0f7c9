// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package renderflags has the flags and the help of hookgate render, which the program hookgate-render has, and which
// hookgate shows without it.
package renderflags

import (
	"time"

	"github.com/spf13/pflag"
)

// Long is the description of the command.
const Long = "Show the objects that Cluster API generates from a Cluster with a topology, including the patches of\n" +
	"its ClusterClass. External patches come from the server in --server, or from the extensions, chains\n" +
	"and rules in the directory of --extension-configs.\n" +
	"The Cluster, its ClusterClass and the templates come from -f, or from an\n" +
	"API server, to which nothing is written. Lifecycle hooks are not called.\n\n" +
	"With --diff, show what would change, which handler makes each change, and what the change does\n" +
	"to Machines.\n" +
	"With --diff, the exit status is 0 if nothing differs, 1 if something differs, and 2 if the command fails."

// Example has examples of the command.
const Example = "  hookgate render -f examples/render --set variables.zone=there --diff render\n" +
	"  hookgate render -f cluster.yaml -f class.yaml -f templates.yaml --server https://127.0.0.1:9443\n" +
	"  hookgate render cluster/prod-1 -n team-a --server https://acme-v7.example:9443 --diff live\n" +
	"  hookgate render -f manifests/ --server grpcs://acme-v7:9090 --against-server grpcs://acme-v6:9090"

// Targets are what the flags set.
type Targets struct {
	Files, Set, AgainstFiles, AgainstSet   *[]string
	Kubeconfig, Context, Namespace         *string
	Server, RegisteredAs, ExtensionConfigs *string
	AgainstServer, AgainstExtensionConfigs *string
	Diff, Output, FeatureGates             *string
	CA, Cert, Key, TokenFile               *string
	Timeout                                *time.Duration
}

// Nowhere returns Targets that no one reads.
func Nowhere() Targets {
	lists, texts := make([][]string, 4), make([]string, 15)
	return Targets{
		Files: &lists[0], Set: &lists[1], AgainstFiles: &lists[2], AgainstSet: &lists[3],
		Kubeconfig: &texts[0], Context: &texts[1], Namespace: &texts[2], Server: &texts[3], RegisteredAs: &texts[4],
		ExtensionConfigs: &texts[5], AgainstServer: &texts[6], AgainstExtensionConfigs: &texts[7], Diff: &texts[8],
		Output: &texts[9], FeatureGates: &texts[10], CA: &texts[11], Cert: &texts[12], Key: &texts[13],
		TokenFile: &texts[14], Timeout: new(time.Duration),
	}
}

// Add adds the flags, which set what to points to. Other commands say --file where these say --filename: both work.
func Add(f *pflag.FlagSet, to Targets) {
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		switch name {
		case "file", "against-file":
			name += "name"
		}
		return pflag.NormalizedName(name)
	})
	f.StringArrayVarP(to.Files, "filename", "f", nil,
		"file or directory with the Cluster, its ClusterClass and templates; - is standard input; may be given "+
			"several times, also as --file. With --context or --kubeconfig, objects that are not in the files are read "+
			"from the management cluster")
	f.StringVar(to.Kubeconfig, "kubeconfig", "", "kubeconfig of the management cluster; default: the one that "+
		"kubectl uses")
	f.StringVar(to.Context, "context", "", "context of the kubeconfig; default: the current context")
	f.StringVarP(to.Namespace, "namespace", "n", "",
		"namespace of the Cluster; default: the namespace of the kubeconfig's context, or \"default\" if the "+
			"context has none")
	f.StringVar(to.Server, "server", "",
		"gateway or extension that generates the patches: https://HOST:PORT, grpcs://HOST:PORT, grpc://HOST:PORT")
	f.StringVar(to.RegisteredAs, "registered-as", "",
		"if --server is an extension, the ExtensionConfig whose settings apply; default: the one that the "+
			"ClusterClass names")
	f.StringVar(to.ExtensionConfigs, "extension-configs", "",
		"directory of ExtensionConfigs, policies, chains and rules: extensions are called in the same way as "+
			"by a gateway that serves this directory")
	f.StringArrayVar(to.Set, "set", nil,
		"change the Cluster first: version=VERSION, class=NAME, or variables.NAME=YAML; may be given several times")
	f.StringVar(to.Diff, "diff", "",
		"live: compare with the live objects; render: compare with a second render. The second render has the input "+
			"of the first, but without --set; the flags --against-… change this input")
	f.StringArrayVar(to.AgainstFiles, "against-filename", nil,
		"file or directory with the objects of the second render, instead of the objects of -f")
	f.StringVar(to.AgainstServer, "against-server", "", "server of the second render; default: the server "+
		"of the first render")
	f.StringVar(to.AgainstExtensionConfigs, "against-extension-configs", "",
		"directory of ExtensionConfigs of the second render; default: the directory of the first render")
	f.StringArrayVar(to.AgainstSet, "against-set", nil, "like --set, but for the second render")
	f.StringVarP(to.Output, "output", "o", "", "yaml, json or table; default: yaml, or table with --diff")
	f.StringVar(to.FeatureGates, "feature-gates", "",
		"feature gates of Cluster API, in the form of the manager's flag --feature-gates; ClusterTopology and RuntimeSDK "+
			"are on")
	f.StringVar(to.CA, "ca", "",
		"PEM file with the CA certificates that verify servers; default: the system's CA certificates")
	f.StringVar(to.Cert, "cert", "", "PEM file with the client certificate to show to servers; needs --key")
	f.StringVar(to.Key, "key", "", "PEM file with the key of --cert")
	f.StringVar(to.TokenFile, "token-file", "", "file with the bearer token to send to servers")
	f.DurationVar(to.Timeout, "timeout", 30*time.Second, "how long to wait for each answer")
}
