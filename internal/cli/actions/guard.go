// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// keys are the secrets of a process.
type keys struct {
	code   string // that a person has from the terminal
	secret []byte
}

func newKeys() keys {
	k := keys{code: strings.ToLower(rand.Text()), secret: make([]byte, sha256.Size)}
	_, _ = rand.Read(k.secret) // never fails
	return k
}

// sign returns the authentication code of parts.
func (k *keys) sign(parts ...string) string {
	mac := hmac.New(sha256.New, k.secret)
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part)) // has one length
		mac.Write(sum[:])
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// isSigned reports whether a text is what sign returns for the parts.
func (k *keys) isSigned(text string, parts ...string) bool {
	return hmac.Equal([]byte(text), []byte(k.sign(parts...)))
}

// isCode reports whether a text is the code, in the time that any other takes.
func (k *keys) isCode(text string) bool {
	return hmac.Equal([]byte(k.sign("code", strings.ToLower(strings.TrimSpace(text)))), []byte(k.sign("code", k.code)))
}

// cookie returns the name of the cookie of a browser that has shown the code. Cookies do not tell ports apart.
func cookie(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return "hookgate-dashboard-" + port
}

// unlock gives the browser its cookie.
func (s *Server) unlock(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // there is no TLS on loopback
		Name: cookie(s.config.Address), Value: s.keys.sign("browser"), Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	})
}

// isUnlocked reports whether the browser has shown the code.
func (s *Server) isUnlocked(r *http.Request) bool {
	c, err := r.Cookie(cookie(s.config.Address))
	return err == nil && s.keys.isSigned(c.Value, "browser")
}

// refusal returns why a request is refused, whoever it is from: it is for a name that only leads here, or the page of
// another site has sent it. The page of the gateway, at another port, may link here, and nothing else.
func (s *Server) refusal(r *http.Request) (code int, why string) {
	site := r.Header.Get("Sec-Fetch-Site")
	switch {
	case r.Host != s.config.Address:
		return http.StatusMisdirectedRequest, "this is " + s.config.Address
	case r.Header.Get("Service-Worker") != "":
		return http.StatusForbidden, "no service workers"
	case r.Method == http.MethodPost:
		if err := s.protection.Check(r); err != nil {
			return http.StatusForbidden, "only pages of this address may send forms here"
		}
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return http.StatusMethodNotAllowed, "only GET, HEAD and POST"
	case site == "cross-site",
		site == "same-site" && (r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"):
		return http.StatusForbidden, "pages of other sites may not read this"
	}
	return 0, ""
}

// local returns the page of this address that a text names, or the first one.
func local(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") {
		return "/"
	}
	return (&url.URL{Path: "/" + strings.TrimLeft(u.Path, `/\`), RawQuery: u.RawQuery}).String()
}
