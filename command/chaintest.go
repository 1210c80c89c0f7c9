// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/chaintest"
	"github.com/hookgate/hookgate/internal/codec"
	"github.com/hookgate/hookgate/internal/files"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/table"
	"github.com/hookgate/hookgate/internal/text"
)

// chainTestOptions are the flags of hookgate chain test.
type chainTestOptions struct {
	clientOptions
	versions         *hookversion.Converter
	extensionConfigs string
}

func newChainCommand(hooks *catalog.Catalog, versions *hookversion.Converter) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "chain",
		Short: "Test chains of handlers",
		RunE: func(*cobra.Command, []string) error {
			return usagef("say what to do with chains: test")
		},
	}
	cmd.AddCommand(newChainTestCommand(hooks, versions))
	return cmd
}

func newChainTestCommand(hooks *catalog.Catalog, versions *hookversion.Converter) *cobra.Command {
	o := chainTestOptions{versions: versions}
	cmd := &cobra.Command{
		Use:   "test FILE...",
		Short: "Call chains with requests, and compare what they make of them",
		Long: "Call the chains of HandlerChainTests, which are files beside a HandlerChain, and compare the objects,\n" +
			"the answers and the failures with those that are wanted. docs/explain.md describes the files.\n\n" +
			"With --extension-configs, no gateway is needed: the chains and extensions are those of the\n" +
			"directory, and the extensions are discovered and called from here.\n\n" +
			"The exit status is 0 if every case passes, and 1 if one fails.",
		Example: "  hookgate chain test chains/*.test.yaml --extension-configs manifests/\n" +
			"  hookgate chain test platform.test.yaml --server https://gateway.example:9443 --ca ca.crt",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("want files with HandlerChainTests")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, hooks, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.extensionConfigs, "extension-configs", "",
		"directory with manifests, as \"hookgate serve\" takes it, instead of a gateway")
	o.addFlags(f)
	o.gateway.addFlags(f)
	completeFlags(cmd, map[string]completion{"context": completeContexts(&o.gateway.kube)})
	return cmd
}

// chainTest is a test with the file that it is in.
type chainTest struct {
	*chaintest.Test
	file string
}

func (o *chainTestOptions) run(cmd *cobra.Command, hooks *catalog.Catalog, paths []string) error {
	if err := onlyOneGateway(cmd); err != nil {
		return err
	}
	if o.timeout <= 0 {
		return usagef("--timeout: want more than 0, got %s", o.timeout)
	}
	tests, err := readChainTests(paths, hooks)
	if err != nil {
		return err
	}
	runner := chaintest.Runner{Hooks: hooks, Codec: codec.New(hooks)}
	closeRunner, err := o.connect(cmd, hooks, &runner)
	if err != nil {
		return fmt.Errorf("chain test: %w", err)
	}
	defer closeRunner()
	var results []chaintest.Result
	for _, t := range tests {
		runner.Read = func(path string) ([]byte, error) {
			if !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(t.file), path)
			}
			return readJSON(nil, path)
		}
		results = append(results, runner.Run(cmd.Context(), t.Test)...)
	}
	if err := cmd.Context().Err(); err != nil {
		return fmt.Errorf("chain test: %w", err)
	}
	return printChainTests(cmd.OutOrStdout(), results)
}

// onlyOneGateway returns an error if the flags name both a gateway and a directory.
func onlyOneGateway(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("extension-configs") {
		return nil
	}
	for _, flag := range []string{"server", "gateway", "context", "kubeconfig"} {
		if cmd.Flags().Changed(flag) {
			return usagef("--extension-configs and --%s: ask a gateway, or read a directory; leave one of them out", flag)
		}
	}
	return nil
}

// readChainTests reads the tests in files.
func readChainTests(paths []string, hooks *catalog.Catalog) ([]chainTest, error) {
	var tests []chainTest
	var errs []error
	reader := &files.Reader{}
	for _, path := range paths {
		content, err := reader.Read(path, limits.ManifestBytes)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found, err := chaintest.Parse(path, content, hooks)
		if err != nil {
			errs = append(errs, err)
		}
		for _, t := range found {
			tests = append(tests, chainTest{t, path})
		}
	}
	return tests, errors.Join(errs...)
}

// connect sets how the runner calls chains, and returns what closes it.
func (o *chainTestOptions) connect(
	cmd *cobra.Command, hooks *catalog.Catalog, runner *chaintest.Runner,
) (func(), error) {
	if o.extensionConfigs != "" {
		ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
		defer cancel()
		local, err := openLocal(ctx, o.extensionConfigs, hooks, o.versions, true, cmd.ErrOrStderr())
		if err != nil {
			return nil, err
		}
		runner.Call = func(
			ctx context.Context, h *catalog.Hook, chain string, request proto.Message,
		) (proto.Message, error) {
			return local.Dispatch(ctx, gateway.Request{Hook: h, Handler: chain, Message: request})
		}
		return local.Close, nil
	}
	closeTunnel, err := o.reach(cmd)
	if err != nil {
		return nil, err
	}
	server, err := o.open(runner.Codec, cmd.ErrOrStderr())
	if err != nil {
		closeTunnel()
		return nil, err
	}
	runner.Call = func(
		ctx context.Context, h *catalog.Hook, chain string, request proto.Message,
	) (proto.Message, error) {
		a, err := server.call(ctx, h, chain, request)
		if refused, ok := errors.AsType[*callError](err); ok && refused.kind != "" {
			return nil, errors.New(refused.message) // the gateway's own text, which is the same each time
		}
		if err != nil {
			return nil, err
		}
		return a.message, nil
	}
	return func() { server.client.Close(); closeTunnel() }, nil
}

// printChainTests prints the results, and returns an error if a case has failed.
func printChainTests(w io.Writer, results []chaintest.Result) error {
	failed := 0
	t := table.New(w)
	t.Row("TEST", "CASE", "RESULT")
	for _, r := range results {
		result := "ok"
		if len(r.Problems) > 0 {
			result = "FAILED"
			failed++
		}
		t.Row(r.Test, r.Case, result)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print results: %w", err)
	}
	for _, r := range results {
		if len(r.Problems) == 0 {
			continue
		}
		_, _ = fmt.Fprintf(w, "\n%s, %s:\n", text.Printable(r.Test), text.Printable(r.Case))
		for i, p := range r.Problems {
			if i == limits.Problems {
				_, _ = fmt.Fprintf(w, "  and %d more\n", len(r.Problems)-i)
				break
			}
			_, _ = fmt.Fprintf(w, "  %s\n", text.Printable(p))
		}
	}
	if failed > 0 {
		return fmt.Errorf("chain test: %d of %s failed", failed, text.Plural(len(results), "case"))
	}
	return nil
}
