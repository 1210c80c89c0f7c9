// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"net/http"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/network/tunnel"
)

// viewerAccount is the service account that deploy/ installs beside a gateway, which may see its status and nothing
// else. Whoever may make tokens of it sees the status with a kubeconfig alone.
const viewerAccount = "hookgate-viewer"

// renewBefore is how long before its end a token is replaced.
const renewBefore = 2 * time.Minute

// viewer sends requests through a tunnel with a token of viewerAccount, where the flags have no credentials. Without
// --ca, the certificate of the gateway is not checked: the API server, which is trusted by the kubeconfig, says which
// Pod it is and carries the bytes, as kubectl port-forward does. If there were another server, it would get this token,
// and no credentials of the user.
type viewer struct {
	*http.Transport
	tunnel *tunnel.Tunnel

	mu      sync.Mutex
	token   string
	expires time.Time
}

// RoundTrip implements http.RoundTripper. Without the account, the request has no token, which the gateway refuses.
func (v *viewer) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := v.current(r)
	if err != nil {
		return nil, err
	}
	if token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return v.Transport.RoundTrip(r)
}

// current returns the token, which is a new one if there is none, or it is near its end.
func (v *viewer) current(r *http.Request) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if time.Until(v.expires) > renewBefore {
		return v.token, nil
	}
	token, expires, err := v.tunnel.Token(r.Context(), viewerAccount)
	if err != nil {
		return "", err
	}
	v.token, v.expires = token, expires
	return token, nil
}
