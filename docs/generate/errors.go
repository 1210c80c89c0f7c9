// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/network/via"
)

// errorsPage is the page about errors up to the rows of its table.
const errorsPage = "# Errors\n\n" +
	"For callers and operators: how a failed call looks, and what each kind of error means.\n\n" +
	"| | over REST | over gRPC |\n|---|---|---|\n" +
	"| the kind of the error | header `" + gateway.ErrorKindHeader + "` | reason of the `google.rpc.ErrorInfo` in the " +
	"status details (domain `" + via.ErrorDomain + "`) |\n" +
	"| the call ID, to find the details in the log | header `" + gateway.CallIDHeader + "` | metadata of that name |\n" +
	"| no handler matches the request, so the gateway answered alone | header `" + gateway.HandlersHeader +
	": 0` of an answer with status 200 | metadata of that name |\n" +
	"| when to try again, if known | header `Retry-After`, in seconds | `google.rpc.RetryInfo` in the status details |\n" +
	"| the body | an answer of the hook with `status: Failure` | |\n\n" +
	"The same failure always has the same text. A `status: Failure` from an extension is not one of these errors: it\n" +
	"arrives as 200 / OK, and no failure policy hides it. [Limits](limits.md) lists the limits behind `TooLarge` and\n" +
	"`Overloaded`.\n\n" +
	"If a gateway calls another gateway, an error of the second gateway keeps its kind and its text. The first gateway adds\n" +
	"the name of the handler to the text. The error opens no circuit in the first gateway. `Unauthenticated`,\n" +
	"`Forbidden`, `UnknownHook` and `Internal` from the second gateway arrive as `BadResponse`.\n\n" +
	"In Go, an error of package [`caller`](callers.md) is a `*hook.Error` of package [`hook`](../hook), and\n" +
	"`hook.KindOf(err)` returns its kind; the cause of the error has the call ID. Package `caller` does not show\n" +
	"`" + gateway.HandlersHeader + "`: to read this header, call over HTTP, or use the stubs with your own connection.\n\n" +
	"This page is generated from the code by `make generate`.\n\n" +
	"| kind | HTTP | gRPC | `Ignore` hides it | meaning |\n|---|---|---|---|---|\n"

// errorKinds writes the page about errors, in Markdown.
func errorKinds(w io.Writer) error {
	var b strings.Builder
	b.WriteString(errorsPage)
	for _, k := range hook.Kinds() {
		ignored := "no"
		if k.Ignorable() {
			ignored = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s | %s |\n", k, k.HTTPStatus(), k.GRPCCode(), ignored, k.Meaning())
	}
	_, err := io.WriteString(w, b.String())
	return err
}
