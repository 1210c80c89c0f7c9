// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"strings"

	"github.com/hookgate/hookgate/hook"
)

// crossOrigin recognizes requests that a browser makes for a page of another site, with the client certificate of its
// user. Only the page of the gateway itself may call hooks.
var crossOrigin http.CrossOriginProtection

// checkOrigin returns an error for a request that a page of another site may have made. Programs send neither of the
// headers that tell. The types of content are a second line: these a browser sends without asking the gateway first.
// Cluster API sends no type at all.
func checkOrigin(r *http.Request) error {
	if crossOrigin.Check(r) != nil { // its text depends on the browser
		return hook.Errorf(hook.Forbidden,
			"pages of other sites may not call hooks: call from a program, or from a page of the gateway")
	}
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch media = strings.ToLower(strings.TrimSpace(media)); media {
	case "application/x-www-form-urlencoded", "multipart/form-data", "text/plain":
		return hook.Errorf(hook.InvalidRequest,
			"Content-Type %s is not allowed, because pages of other sites can send it: send application/json", media)
	}
	return nil
}
