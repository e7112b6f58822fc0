--- A session in which the shared daemon dies: the editor goes on with the next one.

package.path = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/?.lua;' .. package.path
local observe = require('observe')
local seen = observe.seen

local folder = vim.env.NEXUS_TEST_WORKSPACE .. '/backend/auth-service'
local messages = {}

local function append(text)
  observe.request('nexus/session/append', {
    workspaceFolder = vim.uri_from_fname(folder),
    messages = { { role = 'user', content = text } },
  })
end

--- The messages on the page of the context.
local function history()
  local text = observe.read_page('NexusContext', 'context').text
  return vim.iter({ 'Before.', 'After.' }):filter(function(each)
    return text:find('\n' .. each .. '\n', 1, true) or vim.endswith(text, '\n' .. each)
  end):totable()
end

observe.run(function()
  vim.notify = function(message)
    table.insert(messages, message)
  end
  observe.install()
  local buffer = observe.open_attached(folder .. '/.nexus3/config.json')
  local client, first = observe.client(), observe.shared_daemon()
  local function codes(wanted)
    return vim.tbl_map(function(each)
      return each.code
    end, observe.wait_diagnostics(buffer, wanted))
  end
  append('Before.')
  observe.replace_line(buffer, 10, '    "level": "sandbox",')
  seen.before = codes({ 'config.enum' })
  vim.uv.kill(first, 'sigkill')
  observe.replace_line(buffer, 10, '    "level": "sandboxed"')
  seen.after = codes({ 'json.missing-comma' })
  observe.replace_line(buffer, 10, '    "level": "sandboxed",')
  seen.fixed = codes({})
  append('After.')
  seen.history = history()
  seen.another = observe.shared_daemon() ~= first
  seen.same_client = observe.client() == client and not client:is_stopped()
  seen.messages = messages
  vim.bo[buffer].modified = false
end)

vim.cmd.quitall({ bang = true })
