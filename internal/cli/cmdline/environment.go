// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// EnvironmentName returns the name of the variable that sets a flag.
func EnvironmentName(flag string) string {
	return "HOOKGATE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// FlagsFromEnvironment sets each flag that the command line does not set from the variable HOOKGATE_<FLAG>, if that
// exists. If the command line says where to ask, variables that say it in another way have no effect.
func FlagsFromEnvironment(flags *pflag.FlagSet, lookupEnv func(string) (string, bool)) error {
	var errs []error
	overruled := overruledFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		name := EnvironmentName(f.Name)
		value, ok := lookupEnv(name)
		if !ok || f.Changed || f.Name == "help" || slices.Contains(overruled, f.Name) {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, Usagef("environment variable %s: %w", name, err))
		}
	})
	return errors.Join(errs...)
}

// overruledFlags returns the flags of client commands that say where to ask in another way than the command line does.
func overruledFlags(flags *pflag.FlagSet) []string {
	addresses, cluster := []string{"server", "diagnostics"}, []string{"gateway", "context", "kubeconfig"}
	has := func(name string) bool { return flags.Lookup(name) != nil }
	switch {
	case !has("gateway") || !slices.ContainsFunc(addresses, has):
		return nil // not a client of a gateway; those of render do not exclude each other
	case slices.ContainsFunc(addresses, flags.Changed):
		return append(addresses, cluster...)
	case slices.ContainsFunc(cluster, flags.Changed):
		return addresses
	}
	return nil
}
