// SPDX-License-Identifier: Apache-2.0
// nacre web: the graphical application, a page in the browser that this program serves to its own
// user on this machine.
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/terminal.h"
#include "tools/nacre/commands.h"
#include "tools/web/http_server.h"
#include "tools/web/listener.h"
#include "tools/web/program.h"
#include "tools/web/routes.h"

namespace nacre::tools {

namespace {

struct WebArguments {
  bool no_open = false;
  std::uint16_t port = 0;
  std::string socket;
  unsigned idle_minutes = 10;
  unsigned head_seconds = 60;
};

constexpr unsigned idle_minutes_max = 24 * 60;
constexpr unsigned head_seconds_max = 3600;

sigset_t ending_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    ::sigaddset(&signals, signal);
  return signals;
}

// Returns at one of the signals, or when no page has asked for long and no job runs.
void wait_for_end(web::ServerContext& context) {
  const sigset_t signals = ending_signals();
  const timespec interval{.tv_sec = 1, .tv_nsec = 0};
  while (::sigtimedwait(&signals, nullptr, &interval) < 0) {
    context.access.drop_old();
    const bool is_idle = context.access.idle_time() >= std::chrono::minutes(context.idle_minutes);
    if (is_idle && !context.jobs.has_unfinished()) {
      print_note(fmt::format(
          "no page was open for {} minutes, so the server ends. Mounted volumes stay mounted",
          context.idle_minutes));
      return;
    }
  }
}

void show_address(const WebArguments& arguments, const std::string& address) {
  print_raw(address + "\n");
  std::fflush(stdout);
  if (!arguments.socket.empty()) {
    print_note(fmt::format("PORT is the port that ssh -L PORT:{} connects to this socket",
                           arguments.socket));
    return;
  }
  if (arguments.no_open) return;
  if (const auto opened = web::launch_program({"xdg-open", address}); !opened) {
    print_note("no browser was opened (there is no xdg-open): open the address above");
  }
}

Result<> serve(const WebArguments& arguments) {
  // The signals are blocked before other threads begin.
  const sigset_t signals = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  NACRE_ASSIGN(auto listeners, arguments.socket.empty() ? web::listen_on_loopback(arguments.port)
                                                        : web::listen_on_socket(arguments.socket));
  web::ServerContext context;
  context.rules = {.user = ::geteuid(), .hosts = listeners.hosts};
  context.idle_minutes = arguments.idle_minutes;
  context.page_address = arguments.socket.empty()
                             ? fmt::format("http://127.0.0.1:{}/", listeners.port)
                             : "http://127.0.0.1:PORT/";
  NACRE_ASSIGN(context.folder, web::PrivateFolder::create());
  const auto router = web::make_router(context);
  std::vector<std::unique_ptr<web::HttpServer>> servers;
  for (auto& socket : listeners.sockets) {
    NACRE_ASSIGN(auto server, web::HttpServer::start(std::move(socket), *router,
                                                     std::chrono::seconds(arguments.head_seconds)));
    servers.push_back(std::move(server));
  }
  show_address(arguments, context.page_address + "#token=" + context.access.make_one_time_token());
  wait_for_end(context);
  // The end waits for requests and jobs. A second signal does not.
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  servers.clear();
  if (!arguments.socket.empty()) web::remove_socket(arguments.socket, listeners.socket_file);
  return {};
}

}  // namespace

void add_web_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("web", "Open the graphical application in the browser");
  auto arguments = std::make_shared<WebArguments>();
  command->add_flag("--no-open", arguments->no_open,
                    "Print the address of the page, and do not open a browser");
  auto* port = command->add_option("--port", arguments->port,
                                   "Port of 127.0.0.1 to serve at (default: any free one)");
  command
      ->add_option("--socket", arguments->socket,
                   "Serve at this Unix socket instead, for ssh -L PORT:SOCKET")
      ->excludes(port);
  command
      ->add_option("--idle-minutes", arguments->idle_minutes,
                   "End when no page was open for this long")
      ->check(CLI::Range(1u, idle_minutes_max))
      ->capture_default_str();
  command
      ->add_option(
          "--head-seconds", arguments->head_seconds,
          "Close a connection that does not send the whole head of a request within this time")
      ->check(CLI::Range(1u, head_seconds_max))
      ->capture_default_str();
  command->footer(
      "The address opens the page once. Only processes of the same user are served.\n"
      "Examples:\n"
      "  nacre web\n"
      "  nacre web --no-open   prints an address with a port; then on another machine:\n"
      "                        ssh -L PORT:127.0.0.1:PORT HOST\n"
      "Exit status: 0 done, 2 usage, 8 failed, 32 the port is in use");
  command->callback([&action, arguments] {
    action = [arguments] {
      harden_process();
      const auto served = serve(*arguments);
      return served ? exit_fine : report(served.error());
    };
  });
}

}  // namespace nacre::tools
