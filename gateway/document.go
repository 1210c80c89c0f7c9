// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"io"
	"strings"

	"github.com/hookgate/hookgate/hook"
)

// meanings say, for the documentation, when a kind happens and what to do.
var meanings = [...]string{
	hook.Internal:        "A defect of the gateway. The log has the cause under the call id.",
	hook.InvalidRequest:  "The request is not JSON, has a member of the wrong type, or lacks the object that the hook is about. The text names the member.",
	hook.Unauthenticated: "The caller has not said who it is.",
	hook.Forbidden:       "The caller may not call this.",
	hook.UnknownHook:     "No such hook, or not at this path.",
	hook.UnknownHandler:  "No such handler, one of another hook, or one that is not for the request: by the namespaceSelector of its ExtensionConfig, or by the objectSelector or the matchConditions of its ExtensionPolicy.",
	hook.Ambiguous:       "Several handlers match a hook whose answers cannot be merged. The text names them: say which.",
	hook.TooLarge:        "The request is larger than 20 MiB, decompressed.",
	hook.NotReady:        "The gateway has just started and has not read its ExtensionConfigs yet, or the extension beside it has not answered yet. Try again.",
	hook.Conversion:      "An object in the request, or in the answer, has a version that cannot be converted to the one that the handler, or the caller, understands; or the handler implements a version of the hook that the gateway does not serve; or the request of one version of a hook cannot be said in another. The text names it.",
	hook.Unreachable:     "The extension could not be connected to, or the connection broke.",
	hook.Timeout:         "The extension did not answer within its timeout, or before the caller's deadline.",
	hook.BadResponse:     "The extension answered something that is not an answer: another status code than 200, a body that is too large, not JSON, of another kind, or without a status.",
	hook.Canceled:        "The caller left before the answer.",
	hook.Policy:          "A match condition of the handler's ExtensionPolicy fails for the request, is not true or false, or costs too much, so that nobody knows whether the handler is to be called. The text names policy and condition; the log has what CEL says under the call id.",
}

// DocumentErrors writes the table of errors, in Markdown.
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
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s | %s |\n", k, statusCodes[k].http, statusCodes[k].grpc, ignored, meanings[k])
	}
	_, err := io.WriteString(w, b.String())
	return err
}
