// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"io"
	"strings"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/via"
)

// errorsPage is the page about errors up to the rows of its table.
const errorsPage = "# Errors\n\n" +
	"Every call that fails has a kind: over REST in the header `" + ErrorKindHeader + "`, over gRPC as the\n" +
	"reason of the `google.rpc.ErrorInfo` in the status details (domain `" + via.ErrorDomain + "`). The body of a\n" +
	"REST answer other than 200 is an answer of the hook with `status: Failure`. The same failure always has the\n" +
	"same text; the details that vary are in the gateway's log, under the call id in the header\n" +
	"`" + CallIDHeader + "` (gRPC: metadata of that name).\n\n" +
	"A `status: Failure` that an extension answers is not one of these: it arrives as 200 / OK, and no failure\n" +
	"policy hides it.\n\n" +
	"Errors that pass by themselves say when to try again, if that is known: in the header `Retry-After`, in\n" +
	"seconds, or as a `google.rpc.RetryInfo` in the status details. [limits.md](limits.md) lists the limits that\n" +
	"the kinds `TooLarge` and `Overloaded` are about.\n\n" +
	"Where gateways call gateways, the error of the one behind keeps its kind and its text, after the name of the\n" +
	"handler that stands for it. It is an answer of a gateway that works, and opens no circuit of the one in front.\n" +
	"`Unauthenticated`, `Forbidden`, `UnknownHook` and `Internal` are about that gateway itself: they arrive as\n" +
	"`BadResponse`.\n\n" +
	"This page is generated from the code by `make generate`.\n\n" +
	"| kind | HTTP | gRPC | `Ignore` hides it | meaning |\n|---|---|---|---|---|\n"

// DocumentErrors writes the page about errors, in Markdown.
func DocumentErrors(w io.Writer) error {
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
