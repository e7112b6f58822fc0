--- :NexusChat with a loopback provider: an answer, a tool that is allowed, and a cancellation.

package.path = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/?.lua;' .. package.path
local observe = require('observe')
local seen = observe.seen

local folder = vim.env.NEXUS_TEST_WORKSPACE .. '/web'
local place = { workspaceFolder = vim.uri_from_fname(folder) }
local questions = {}

local function approve_server()
  local server = vim.iter(observe.request('nexus/mcp/servers', place).servers):find(function(each)
    return each.name == 'notes'
  end)
  local params = vim.tbl_extend('error', place, { name = server.name, hash = server.hash })
  observe.request('nexus/mcp/approve', params)
  observe.request('nexus/mcp/start', vim.tbl_extend('error', place, { name = server.name }))
end

observe.run(function()
  vim.fn.confirm = function(question)
    table.insert(questions, question)
    return 1
  end
  observe.install()
  observe.open_attached(folder .. '/.nexus3/NEXUS.md')
  approve_server()
  vim.cmd('NexusChat notes')
  local buffer = vim.api.nvim_get_current_buf()

  --- Type a message and wait until the buffer shows a text.
  local function say(message, wanted)
    vim.api.nvim_feedkeys('A' .. message .. vim.keycode('<CR><Esc>'), 'xt', false)
    observe.wait(wanted, function()
      return observe.text(buffer):find(wanted, 1, true) ~= nil
    end)
  end

  say('What do the notes say?', '2 steps')
  seen.answer = observe.text(buffer)
  seen.questions = questions
  say('Go on for ever.', 'Half an')
  vim.fn.maparg('<C-c>', 'n', false, true).callback() -- a script's own CTRL-C would end the script
  observe.wait('cancelled', function()
    return observe.text(buffer):find('Cancelled.', 1, true) ~= nil
  end)
  say('And again?', 'Whole.')
end)

vim.cmd.quitall({ bang = true })
