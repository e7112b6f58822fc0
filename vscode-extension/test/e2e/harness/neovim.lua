--- What the tests ask of a Neovim beside VS Code. It has the plugin as a package, and a file of the folder open.

package.path = vim.env.NEXUS_TEST_OBSERVE .. '/?.lua;' .. package.path
local observe = require('observe')
local M = { changes = {}, messages = {} }

--- Open a file; `folder` is what it belongs to.
function M.open(folder, file)
  M.folder = vim.uri_from_fname(folder)
  vim.notify = function(message)
    table.insert(M.messages, message)
  end
  observe.install()
  vim.lsp.config('nexus', {
    handlers = {
      ['nexus/session/didChange'] = function(_, params)
        table.insert(M.changes, { session = params.session, reason = params.reason, by = params.by })
      end,
    },
  })
  M.buffer = observe.open_attached(file)
end

--- Add a turn to a conversation; its text is its key, so that it may be sent twice.
function M.append(session, text)
  local messages = { { role = 'user', content = text } }
  local params = { workspaceFolder = M.folder, session = session, messages = messages, idempotencyKey = text }
  observe.request('nexus/session/append', params)
end

--- Take the changes of conversations that were told so far.
function M.told()
  local changes = M.changes
  M.changes = {}
  return changes
end

--- The text of the page that a user command opens.
function M.page(command, view)
  return observe.read_page(command, view).text
end

--- Type at the end of the file, without saving.
function M.type(text)
  vim.api.nvim_buf_set_lines(M.buffer, -1, -1, true, { text })
end

--- What the user was shown, and whether the client is the first one still.
function M.state()
  local status = observe.request('nexus/status', vim.empty_dict())
  return { messages = M.messages, client = observe.client().id, connections = status.connections }
end

_G.live = M
