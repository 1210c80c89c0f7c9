// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/hooktest"
	"github.com/hookgate/hookgate/internal/cli/localgateway"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/sources/manifest"
)

// chainTestOptions are the flags of hookgate chain test.
type chainTestOptions struct {
	target.ClientOptions
	versions         *hookversion.Converter
	extensionConfigs string
	results          testResults
}

// NewChainCommand returns the command hookgate chain.
func NewChainCommand(hooks *catalog.Catalog, versions *hookversion.Converter) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "chain",
		Short: "Test chains of handlers",
		RunE:  cmdline.Choose("do with chains", "test"),

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(newChainTestCommand(hooks, versions))
	return cmd
}

func newChainTestCommand(hooks *catalog.Catalog, versions *hookversion.Converter) *cobra.Command {
	o := chainTestOptions{versions: versions, results: testResults{of: "chain"}}
	cmd := &cobra.Command{
		Use:   "test FILE|DIR...",
		Short: "Run the tests of HandlerChains",
		Long: "Run HandlerChainTests, which are files beside a HandlerChain: call the chain with the\n" +
			"requests in the tests, and compare the objects, the answers and the failures with the expected\n" +
			"ones. For DIR, the command runs all tests in the folder. docs/explain.md describes the files.\n\n" +
			"With --extension-configs, no gateway is needed: the command reads the chains and\n" +
			"ExtensionConfigs of the directory, and discovers and calls the extensions itself.\n\n" +
			"The exit status is 0 if every case passes, and 1 if one fails.",
		Example: "  hookgate chain test chains/*.test.yaml --extension-configs manifests/\n" +
			"  hookgate chain test platform.test.yaml --server https://gateway.example:9443 --ca ca.crt",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmdline.Usagef("want files with HandlerChainTests, or folders with such files")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, hooks, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.extensionConfigs, "extension-configs", "",
		"directory with manifests to use instead of a gateway, in the form that \"hookgate serve\" reads")
	o.results.addFlags(f)
	o.AddFlags(f)
	o.Gateway.AddFlags(f)
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"context": target.CompleteContexts(&o.Gateway.Kube)})
	return cmd
}

func (o *chainTestOptions) run(cmd *cobra.Command, hooks *catalog.Catalog, paths []string) error {
	if err := errors.Join(target.OnlyOneGateway(cmd), o.results.check()); err != nil {
		return err
	}
	if o.Timeout <= 0 {
		return cmdline.Usagef("--timeout: want more than 0, got %s", o.Timeout)
	}
	var tests []*hooktest.Test
	var errs []error
	for _, path := range paths {
		found, err := chainTestsIn(path, hooks)
		errs, tests = append(errs, err), append(tests, found...)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("chain test: %w", err)
	}
	runner := hooktest.Runner{Hooks: hooks, Codec: codec.New(hooks)}
	call, closeRunner, err := o.connect(cmd, hooks, runner.Codec)
	if err != nil {
		return fmt.Errorf("chain test: %w", err)
	}
	defer closeRunner()
	var results []hooktest.Result
	for _, t := range tests {
		h, _ := hooks.ByName(t.Spec.Hook) // which the parser has found
		runner.Read = beside(t.Place("").File)
		runner.Call = func(
			ctx context.Context, h *catalog.Hook, _ *hooktest.Given, request proto.Message,
		) (proto.Message, error) {
			return call(ctx, h, t.Spec.Chain, request)
		}
		results = append(results, runner.Run(cmd.Context(), h, t)...)
	}
	if err := cmd.Context().Err(); err != nil {
		return fmt.Errorf("chain test: %w", err)
	}
	return o.results.print(cmd.OutOrStdout(), results)
}

// chainTestsIn returns the tests in a file, which has nothing else, or in a directory, which may have other manifests,
// and requests.
func chainTestsIn(path string, hooks *catalog.Catalog) ([]*hooktest.Test, error) {
	reader := &files.Reader{}
	if manifest.CheckDir(reader, path) != nil {
		f, err := manifest.ReadFile(reader, path)
		if err != nil {
			return nil, err
		}
		return hooktest.ParseChainTests(&f, hooks, false)
	}
	all, err := manifest.ReadFiles(reader, path)
	errs := []error{err}
	var tests []*hooktest.Test
	for i := range all {
		if content := all[i].Content(); len(content) > 0 && !bytes.Contains(content, []byte(v1alpha1.GroupVersion.Group)) {
			continue // what could not be read is an error
		}
		found, err := hooktest.ParseChainTests(&all[i], hooks, true)
		tests, errs = append(tests, found...), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil || len(tests) > 0 {
		return tests, err
	}
	return nil, fmt.Errorf("%s has no %s", path, hooktest.ChainKind)
}

// chainCaller calls a chain.
type chainCaller func(ctx context.Context, h *catalog.Hook, chain string, request proto.Message) (proto.Message, error)

// connect returns how chains are called, and what closes that.
func (o *chainTestOptions) connect(
	cmd *cobra.Command, hooks *catalog.Catalog, mandated *codec.Codec,
) (chainCaller, func(), error) {
	if o.extensionConfigs != "" {
		ctx, cancel := context.WithTimeout(cmd.Context(), o.Timeout)
		defer cancel()
		local, err := localgateway.Open(ctx, o.extensionConfigs, hooks, o.versions, true, cmd.ErrOrStderr())
		if err != nil {
			return nil, nil, err
		}
		return func(
			ctx context.Context, h *catalog.Hook, chain string, request proto.Message,
		) (proto.Message, error) {
			return local.Dispatch(ctx, gateway.Request{Hook: h, Handler: chain, Message: request})
		}, local.Close, nil
	}
	server, disconnect, err := o.Connect(cmd, mandated, cmd.ErrOrStderr())
	if err != nil {
		return nil, nil, err
	}
	return func(
		ctx context.Context, h *catalog.Hook, chain string, request proto.Message,
	) (proto.Message, error) {
		a, err := server.Call(ctx, h, chain, request)
		if refused, ok := errors.AsType[*target.CallError](err); ok && refused.Kind != "" {
			return nil, errors.New(refused.Message) // the gateway's own text, which is the same each time
		}
		if err != nil {
			return nil, err
		}
		return a.Message, nil
	}, disconnect, nil
}
