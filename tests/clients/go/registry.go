package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/twmb/franz-go/pkg/sr/srfake"
)

// serveRegistry is franz-go's own registry, in memory, on a free port of loopback, until standard input ends.
func serveRegistry() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check("a port", err)
	say("listening", facts{"url": fmt.Sprintf("http://%s", listener.Addr())})
	go func() { check("serving", http.Serve(listener, srfake.NewRegistry().Handler())) }()
	_, err = io.Copy(io.Discard, os.Stdin)
	check("standard input", err)
}
