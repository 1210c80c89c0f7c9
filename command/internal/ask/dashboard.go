// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
)

// dashboardOptions are the flags of hookgate dashboard.
type dashboardOptions struct {
	target.StatusOptions
	hooks     *catalog.Catalog
	ofCluster ClusterActions
	port      uint16
	browser   bool
}

// NewDashboardCommand returns the command hookgate dashboard. ofCluster returns what commands do in the cluster of a
// gateway.
func NewDashboardCommand(hooks *catalog.Catalog, ofCluster ClusterActions) *cobra.Command {
	o := dashboardOptions{hooks: hooks, ofCluster: ofCluster}
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Open a gateway's page in the browser",
		Long: "On this machine, serve a gateway's page about its extensions until Ctrl-C, and open the page in the\n" +
			"browser. The page has a loopback address: while the command runs, other users of this machine can open it,\n" +
			"too, and see everything that --token-file and --cert permit.\n\n" +
			"Like commands, the buttons act with your rights: they approve, promote, pause, resume or undo a rollout,\n" +
			"lift a hold, record a handler, or explain a request. Each button first shows what it would change. The command\n" +
			"prints a link and a code: the buttons work only in a browser that has opened the link, or in which you\n" +
			"have entered the code. Other users of this machine have neither the link nor the code.",
		Example: "  hookgate dashboard\n  hookgate dashboard --context management --browser=false",
		Args:    cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.Ask(cmd, func(c *target.StatusClient) error { return o.serve(cmd, c) })
		},
	}
	f := o.AddFlags(cmd)
	f.Uint16Var(&o.port, "port", 0, "port on this machine; 0 means a free port")
	f.BoolVar(&o.browser, "browser", true, "open the page in the browser; otherwise, only print its URL")
	return cmd
}

// serve forwards requests to the gateway until the command's context is done.
func (o *dashboardOptions) serve(cmd *cobra.Command, c *target.StatusClient) error {
	ctx := cmd.Context()
	code, body, err := c.Fetch(ctx, "/", nil, 1<<10)
	switch {
	case err != nil:
		return err
	case code == http.StatusNotFound:
		return fmt.Errorf("gateway %s has no page: it runs with --ui=false, or this is not its diagnostics address", c.Name())
	case code != http.StatusOK:
		return c.Refusal(code, body, "")
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp",
		net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.port))))
	if err != nil {
		return fmt.Errorf("listen for the browser (--port): %w", err)
	}
	address := listener.Addr().String()
	page := "http://" + address + "/"
	acts, stop, err := o.serveActions(cmd, c, page)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer stop()
	server := &http.Server{
		Handler: forward(c, address, acts.Header()), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	_, _ = fmt.Fprintln(cmd.OutOrStdout(), page)
	_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "The page is served until Ctrl-C.")
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "To use the page's buttons, open %s once, or enter the code %s "+
		"when the page asks.\n",
		acts.Link(), acts.Code())
	if o.browser {
		if err := openBrowser(ctx, page); err != nil {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "The browser could not be opened, so open the page yourself: %s.\n", err)
		}
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// passed are the headers of the gateway's answers that the browser gets. Cookies, for one, would count for everything
// else on this machine, whatever its port, and so would a header that clears them; a location would lead elsewhere.
var passed = []string{
	"Cache-Control", "Content-Encoding", "Content-Length", "Content-Security-Policy", "Content-Type",
	"Cross-Origin-Resource-Policy", "Referrer-Policy", "Retry-After", "Vary", "X-Content-Type-Options",
}

// forward returns a handler that asks the gateway. It answers only what is asked of address, so that a page of another
// site, whose name leads here, learns nothing, and passes on only what reads. actionsHeader tells the gateway which
// actions its page may link to.
func forward(c *target.StatusClient, address, actionsHeader string) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport: c.HTTP.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(c.Base)
			r.Out.Header.Del("Cookie")
			r.Out.Header.Del("Authorization")
			r.Out.Header.Set(status.ActionsHeader, actionsHeader)
			if c.Token != "" {
				r.Out.Header.Set("Authorization", "Bearer "+c.Token)
			}
		},
		ModifyResponse: func(r *http.Response) error {
			header := http.Header{}
			for _, name := range passed {
				if values, ok := r.Header[name]; ok {
					header[name] = values
				}
			}
			r.Header = header
			return nil
		},
		FlushInterval: -1, // the page is live
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			http.Error(w, c.Explain(r.Context(), err).Error(), http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host != address:
			http.Error(w, "this is "+address, http.StatusMisdirectedRequest)
		case r.Header.Get("Service-Worker") != "": // it would stay in the browser, for whatever has the port next
			http.Error(w, "no service workers", http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		default:
			proxy.ServeHTTP(w, r)
		}
	})
}

// openBrowser opens a page in the browser of the desktop, and does not wait for it.
func openBrowser(ctx context.Context, page string) error {
	name, args := "xdg-open", []string{page}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", page}
	}
	browser := exec.CommandContext(ctx, name, args...) //nolint:gosec // the program is one of three
	if err := browser.Start(); err != nil {
		return err
	}
	go func() { _ = browser.Wait() }()
	return nil
}
