// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/base/yaml"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/sources/manifest"
)

// ruleRightsOptions are the flags of hookgate rule rbac.
type ruleRightsOptions struct {
	kube    target.KubeOptions
	account string
}

func newRuleRightsCommand(hooks *catalog.Catalog) *cobra.Command {
	o := ruleRightsOptions{account: "hookgate-system/hookgate"}
	cmd := &cobra.Command{
		Use:   "rbac [FILE|DIR]...",
		Short: "Print the rights that a gateway needs to read the params of rules",
		Long: "Print the roles and bindings that allow the service account of a gateway to list and watch the\n" +
			"objects that HookRules refer to in their params, and no other objects. The HookRules come from\n" +
			"files or, without files, from a cluster.\n\n" +
			"The names of resources come from the cluster. If you give files but neither --kubeconfig nor\n" +
			"--context, the names are guessed from the kinds.",
		Example: "  hookgate rule rbac | kubectl apply -f -\n" +
			"  hookgate rule rbac rules/ > rights.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, name, ok := strings.Cut(o.account, "/")
			if !ok || namespace == "" || name == "" {
				return cmdline.Usagef("--service-account %q: want NAMESPACE/NAME", o.account)
			}
			var cluster *rest.Config
			if len(args) == 0 || o.kube != (target.KubeOptions{}) {
				var err error
				if cluster, err = o.kube.Load(); err != nil {
					return err
				}
			}
			read := func() ([]hookrule.Reference, error) { return ruleFiles(args, hooks, cmd.ErrOrStderr()) }
			if len(args) == 0 {
				read = func() ([]hookrule.Reference, error) { return ruleObjects(cmd.Context(), cluster, hooks) }
			}
			references, err := read()
			if err != nil {
				return fmt.Errorf("rule rbac: %w", err)
			}
			resources, err := resourcesOf(references, cluster)
			if err != nil {
				return fmt.Errorf("rule rbac: %w", err)
			}
			rights := hookrule.Rights(references, resources, types.NamespacedName{Namespace: namespace, Name: name})
			if len(rights) == 0 {
				_, err := fmt.Fprintln(cmd.ErrOrStderr(), "no HookRule has params")
				return err
			}
			return printManifests(cmd.OutOrStdout(), rights)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.account, "service-account", o.account, "the gateway's service account, as NAMESPACE/NAME")
	o.kube.AddFlags(f)
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"context": target.CompleteContexts(&o.kube)})
	return cmd
}

// ruleFiles returns what the rules in files and directories read. Warnings about the files are notes.
func ruleFiles(paths []string, hooks *catalog.Catalog, notes io.Writer) ([]hookrule.Reference, error) {
	decoder, err := manifest.NewDecoder(hooks, manifest.AllRules(nil, nil, time.Now))
	if err != nil {
		return nil, err
	}
	reader := &files.Reader{}
	var all []manifest.File
	for _, path := range paths {
		found, err := manifest.ReadFiles(reader, path)
		if err != nil {
			var file manifest.File
			if file, err = manifest.ReadFile(reader, path); err != nil {
				return nil, err
			}
			found = []manifest.File{file}
		}
		all = append(all, found...)
	}
	tester := ruleTester{decoder: decoder, notes: notes}
	rules, err := tester.rules(all)
	var references []hookrule.Reference
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if rule, ok := rules[name].InProcess.(*hookrule.Rule); ok {
			references = append(references, rule.References()...)
		}
	}
	return references, err
}

// ruleObjects returns what the rules of a cluster read.
func ruleObjects(
	ctx context.Context, config *rest.Config, hooks *catalog.Catalog,
) ([]hookrule.Reference, error) {
	cel, err := policy.NewCompiler()
	if err != nil {
		return nil, err
	}
	of, err := policy.NewTypes(hooks)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	list := &v1alpha1.HookRuleList{}
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list HookRules: %w", target.NotServed("HookRule", err))
	}
	rules := hookrule.NewCompiler(hooks, cel, of, time.Now)
	var references []hookrule.Reference
	var errs []error
	for i := range list.Items {
		reg, mistakes := rules.Compile(&list.Items[i])
		if err := mistakes.ToAggregate(); err != nil {
			errs = append(errs, fmt.Errorf("HookRule %q: %w", list.Items[i].Name, err))
			continue
		}
		if rule, ok := reg.InProcess.(*hookrule.Rule); ok {
			references = append(references, rule.References()...)
		}
	}
	return references, errors.Join(errs...)
}

// resourcesOf returns the resources of the kinds of references, guessed without a cluster.
func resourcesOf(
	references []hookrule.Reference, config *rest.Config,
) (map[schema.GroupVersionKind]schema.GroupResource, error) {
	var mapper meta.RESTMapper
	if config != nil {
		asks, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, err
		}
		if mapper, err = apiutil.NewDynamicRESTMapper(config, asks); err != nil {
			return nil, err
		}
	}
	resources := map[schema.GroupVersionKind]schema.GroupResource{}
	var errs []error
	for _, of := range references {
		if _, known := resources[of.Kind]; known {
			continue
		}
		plural, _ := meta.UnsafeGuessKindToResource(of.Kind)
		if mapper != nil {
			mapping, err := mapper.RESTMapping(of.Kind.GroupKind(), of.Kind.Version)
			if err != nil {
				errs = append(errs, fmt.Errorf("kind %s of %s: %w", of.Kind.Kind, of.Kind.GroupVersion(), err))
				continue
			}
			plural = mapping.Resource
		}
		resources[of.Kind] = plural.GroupResource()
	}
	return resources, errors.Join(errs...)
}

// printManifests prints objects as documents in YAML.
func printManifests(w io.Writer, objects []any) error {
	for _, o := range objects {
		data, err := json.Marshal(o)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w, "---"); err != nil {
			return err
		}
		if err := yaml.FromJSON(w, data); err != nil {
			return fmt.Errorf("print rights: %w", err)
		}
	}
	return nil
}
