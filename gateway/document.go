// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"io"
	"strings"

	"github.com/hookgate/hookgate/hook"
)

// DocumentErrors writes the page about errors, in Markdown.
func DocumentErrors(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Errors\n\n")
	b.WriteString("Every call that fails has a kind: over REST in the header `" + ErrorKindHeader + "`, over gRPC as the reason of the\n")
	b.WriteString("`google.rpc.ErrorInfo` in the status details (domain `" + errorDomain + "`). The body of a REST answer other than 200 is an answer of the\n")
	b.WriteString("hook with `status: Failure`. The text is the same for the same failure every time; what varies is in the gateway's log, under\n")
	b.WriteString("the call id that is in the header `" + CallIDHeader + "` (gRPC: metadata of that name).\n\n")
	b.WriteString("A `status: Failure` that an extension answers is not one of these: it arrives as 200 / OK, and no failure policy hides it.\n\n")
	b.WriteString("This page is made from the code by `make generate`.\n\n")
	b.WriteString("| kind | HTTP | gRPC | `Ignore` hides it | meaning |\n|---|---|---|---|---|\n")
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
